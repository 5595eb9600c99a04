//! Waits in other functions than those of mutexes.

use std::cell::UnsafeCell;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use libc::{EBUSY, EINVAL, ETIMEDOUT, c_int, c_void, timespec};

use super::asleep;
use super::objects::{Cond, Mutex};

/// The least time of a wait.
const REST: Duration = Duration::from_millis(10);

/// An object of the C library.
struct Object<T>(UnsafeCell<T>);

// SAFETY: it is used by functions that any thread may call.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    const fn get(&self) -> *mut T {
        self.0.get()
    }
}

static LOCK: Object<libc::pthread_rwlock_t> =
    Object(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER));
// SAFETY: `sem_init` makes a semaphore of it.
static SEMAPHORE: Object<libc::sem_t> = Object(UnsafeCell::new(unsafe { mem::zeroed() }));
// SAFETY: `pthread_barrier_init` makes a barrier of it.
static BARRIER: Object<libc::pthread_barrier_t> = Object(UnsafeCell::new(unsafe { mem::zeroed() }));
static MUTEX: Mutex = Mutex::new();
static COND: Cond = Cond::new();
static FLAG: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    fn pthread_rwlock_timedwrlock(
        lock: *mut libc::pthread_rwlock_t,
        until: *const timespec,
    ) -> c_int;
}

fn succeeds(result: c_int) {
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn start(body: extern "C" fn(*mut c_void) -> *mut c_void) -> libc::pthread_t {
    let mut thread = 0;
    // SAFETY: the function needs nothing.
    succeeds(unsafe { libc::pthread_create(&mut thread, ptr::null(), body, ptr::null_mut()) });
    thread
}

#[inline(never)]
fn end_of(thread: libc::pthread_t) -> usize {
    let mut result = ptr::null_mut();
    // SAFETY: a thread that was started and not joined yet.
    succeeds(unsafe { libc::pthread_join(thread, &mut result) });
    result.addr()
}

/// The system's number of the thread that waits next, or 0.
static WAITER: AtomicI32 = AtomicI32::new(0);

/// Announces that the calling thread is about to wait.
fn announce() {
    // SAFETY: asks for a number.
    WAITER.store(unsafe { libc::gettid() }, Ordering::SeqCst);
}

/// Runs `hold` while a thread waits in `body`, and returns the thread's result.
fn beside(body: extern "C" fn(*mut c_void) -> *mut c_void, hold: impl FnOnce()) -> usize {
    WAITER.store(0, Ordering::SeqCst);
    let thread = start(body);
    while !matches!(WAITER.load(Ordering::SeqCst), waiter if waiter != 0 && asleep::sleeps(waiter))
    {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(REST);
    hold();
    end_of(thread)
}

#[inline(never)]
extern "C" fn reads(_: *mut c_void) -> *mut c_void {
    announce();
    // SAFETY: a lock.
    succeeds(unsafe { libc::pthread_rwlock_rdlock(LOCK.get()) });
    // SAFETY: locked above.
    succeeds(unsafe { libc::pthread_rwlock_unlock(LOCK.get()) });
    ptr::without_provenance_mut(5)
}

#[inline(never)]
extern "C" fn writes(_: *mut c_void) -> *mut c_void {
    announce();
    // SAFETY: a lock.
    succeeds(unsafe { libc::pthread_rwlock_wrlock(LOCK.get()) });
    // SAFETY: locked above.
    succeeds(unsafe { libc::pthread_rwlock_unlock(LOCK.get()) });
    ptr::null_mut()
}

#[inline(never)]
extern "C" fn takes(_: *mut c_void) -> *mut c_void {
    announce();
    // SAFETY: a semaphore.
    succeeds(unsafe { libc::sem_wait(SEMAPHORE.get()) });
    ptr::null_mut()
}

#[inline(never)]
extern "C" fn meets(_: *mut c_void) -> *mut c_void {
    announce();
    // SAFETY: a barrier.
    let result = unsafe { libc::pthread_barrier_wait(BARRIER.get()) };
    assert!(result == 0 || result == libc::PTHREAD_BARRIER_SERIAL_THREAD);
    ptr::null_mut()
}

#[inline(never)]
extern "C" fn awaits(_: *mut c_void) -> *mut c_void {
    announce();
    succeeds(MUTEX.lock());
    while !FLAG.load(Ordering::SeqCst) {
        COND.wait(&MUTEX);
    }
    succeeds(MUTEX.unlock());
    ptr::null_mut()
}

extern "C" fn rests(_: *mut c_void) -> *mut c_void {
    // Until the main thread sleeps in its join, which then lasts as long as the rest.
    while !asleep::sleeps(std::process::id().cast_signed()) {
        thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: takes a number.
    succeeds(unsafe { libc::usleep(10_000) });
    ptr::null_mut()
}

// A thread is cancelled in these, by an unwinding of its stack: no frame has a destructor.

fn take_in_vain() {
    // SAFETY: a semaphore.
    unsafe { libc::sem_wait(SEMAPHORE.get()) };
}

fn join_in_vain() {
    // SAFETY: a thread that does not end.
    unsafe { libc::pthread_join(start(sleeps), ptr::null_mut()) };
}

fn sleep_long() {
    // SAFETY: takes a number.
    unsafe { libc::sleep(3600) };
}

extern "C" fn takes_in_vain(_: *mut c_void) -> *mut c_void {
    loop {
        take_in_vain();
    }
}

extern "C" fn joins_in_vain(_: *mut c_void) -> *mut c_void {
    loop {
        join_in_vain();
    }
}

extern "C" fn sleeps(_: *mut c_void) -> *mut c_void {
    loop {
        sleep_long();
    }
}

/// Waits in each function, and checks what it returns.
pub(super) fn run() {
    // SAFETY: an object that no thread uses yet.
    succeeds(unsafe { libc::sem_init(SEMAPHORE.get(), 0, 0) });
    // SAFETY: an object that no thread uses yet.
    succeeds(unsafe { libc::pthread_barrier_init(BARRIER.get(), ptr::null(), 2) });

    // SAFETY: a lock.
    let write = || succeeds(unsafe { libc::pthread_rwlock_wrlock(LOCK.get()) });
    // SAFETY: locked by the caller.
    let unlock = || succeeds(unsafe { libc::pthread_rwlock_unlock(LOCK.get()) });
    write();
    assert_eq!(beside(reads, unlock), 5, "the thread's result");
    write();
    beside(writes, || {
        let past = timespec { tv_sec: 1, tv_nsec: 0 };
        let wrong = timespec { tv_sec: 1, tv_nsec: -1 };
        // SAFETY: a lock.
        assert_eq!(unsafe { libc::pthread_rwlock_trywrlock(LOCK.get()) }, EBUSY);
        let late = thread::spawn(move || {
            // SAFETY: a lock, and a time.
            let late = unsafe { pthread_rwlock_timedwrlock(LOCK.get(), &past) };
            // SAFETY: a lock, and a time that is none.
            (late, unsafe { pthread_rwlock_timedwrlock(LOCK.get(), &wrong) })
        });
        assert_eq!(late.join().unwrap(), (ETIMEDOUT, EINVAL));
        unlock();
    });
    // SAFETY: a semaphore.
    beside(takes, || succeeds(unsafe { libc::sem_post(SEMAPHORE.get()) }));
    let past = timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: a semaphore, and a time.
    assert_eq!(unsafe { libc::sem_timedwait(SEMAPHORE.get(), &past) }, -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(ETIMEDOUT));
    beside(meets, || {
        meets(ptr::null_mut());
    });
    beside(awaits, || {
        succeeds(MUTEX.lock());
        FLAG.store(true, Ordering::SeqCst);
        succeeds(MUTEX.unlock());
        COND.broadcast();
    });
    let short = timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    // SAFETY: a time, and no place for the rest.
    succeeds(unsafe { libc::nanosleep(&short, ptr::null_mut()) });
    let clock = libc::CLOCK_MONOTONIC;
    // SAFETY: as above.
    succeeds(unsafe { libc::clock_nanosleep(clock, 0, &short, ptr::null_mut()) });
    assert_eq!(end_of(start(rests)), 0);
    for body in [takes_in_vain, joins_in_vain, sleeps] {
        let thread = start(body);
        thread::sleep(REST);
        // SAFETY: started above, and not joined yet.
        succeeds(unsafe { pthread_cancel(thread) });
        assert_eq!(end_of(thread), usize::MAX, "PTHREAD_CANCELED");
    }
}
