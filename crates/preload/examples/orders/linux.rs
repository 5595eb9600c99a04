//! The tests, each by its name. The statics have names, under which they are reported.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A mutex of the C library.
#[repr(transparent)]
struct Mutex(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex may be used by several threads.
unsafe impl Sync for Mutex {}
// SAFETY: one that no thread holds may be moved.
unsafe impl Send for Mutex {}

impl Mutex {
    const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Makes it anew, of that kind.
    fn init(&self, kind: c_int) {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: initializes them.
        assert_eq!(unsafe { libc::pthread_mutexattr_init(attributes) }, 0);
        // SAFETY: initialized.
        assert_eq!(unsafe { libc::pthread_mutexattr_settype(attributes, kind) }, 0);
        // SAFETY: a mutex that no thread uses.
        assert_eq!(unsafe { libc::pthread_mutex_init(self.0.get(), attributes) }, 0);
    }

    #[inline(never)]
    fn lock(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    fn try_lock(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) }
    }

    fn lock_until(&self, until: libc::timespec) -> c_int {
        // SAFETY: a mutex and a time.
        unsafe { libc::pthread_mutex_timedlock(self.0.get(), &until) }
    }

    fn unlock(&self) -> c_int {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) }
    }

    fn destroy(&self) -> c_int {
        // SAFETY: a mutex that no thread uses.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) }
    }
}

/// A read-write lock of the C library.
#[repr(transparent)]
struct RwLock(UnsafeCell<libc::pthread_rwlock_t>);
// SAFETY: a lock may be used by several threads.
unsafe impl Sync for RwLock {}

impl RwLock {
    const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER))
    }

    fn read(&self) {
        // SAFETY: a lock.
        assert_eq!(unsafe { libc::pthread_rwlock_rdlock(self.0.get()) }, 0);
    }

    fn write(&self) {
        // SAFETY: a lock.
        assert_eq!(unsafe { libc::pthread_rwlock_wrlock(self.0.get()) }, 0);
    }

    fn try_write(&self) {
        // SAFETY: a lock.
        assert_eq!(unsafe { libc::pthread_rwlock_trywrlock(self.0.get()) }, 0);
    }

    fn unlock(&self) {
        // SAFETY: a lock that this thread holds.
        assert_eq!(unsafe { libc::pthread_rwlock_unlock(self.0.get()) }, 0);
    }
}

#[unsafe(no_mangle)]
/// The first lock.
static FIRST: Mutex = Mutex::new();
#[unsafe(no_mangle)]
/// The second lock.
static SECOND: Mutex = Mutex::new();
#[unsafe(no_mangle)]
/// The lock that keeps others apart.
static GATE: Mutex = Mutex::new();
#[unsafe(no_mangle)]
/// A read-write lock.
static TABLE: RwLock = RwLock::new();

/// Takes one mutex within another.
#[inline(never)]
fn nested(outer: &Mutex, inner: &Mutex) {
    assert_eq!(outer.lock(), 0);
    assert_eq!(inner.lock(), 0);
    assert_eq!([inner.unlock(), outer.unlock()], [0; 2]);
}

#[inline(never)]
fn forward() {
    nested(&FIRST, &SECOND);
}

#[inline(never)]
fn backward() {
    nested(&SECOND, &FIRST);
}

/// Runs `body` in a thread to its end.
fn alone(body: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(body).join().unwrap());
}

/// Returns the time in ten seconds.
fn later() -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    libc::timespec { tv_sec: now.tv_sec + 10, ..now }
}

/// Two threads take both mutexes within a third one.
fn gate() {
    for body in [forward, backward] {
        alone(|| {
            assert_eq!(GATE.lock(), 0);
            body();
            assert_eq!(GATE.unlock(), 0);
        });
    }
}

/// A mutex ends, and another one is made in its place: by a call, or by an initializer only.
fn reused(ends: bool) {
    let place = Box::new(Mutex::new());
    alone(|| nested(&FIRST, &place));
    if ends {
        assert_eq!(place.destroy(), 0);
        place.init(libc::PTHREAD_MUTEX_NORMAL);
    } else {
        // SAFETY: no thread uses it.
        unsafe { *place.0.get() = libc::PTHREAD_MUTEX_INITIALIZER };
    }
    alone(|| nested(&place, &FIRST));
}

/// The opposite order is taken by an attempt, or with a limit.
fn attempts() {
    alone(forward);
    alone(|| {
        assert_eq!([SECOND.lock(), FIRST.try_lock()], [0; 2]);
        assert_eq!([FIRST.unlock(), FIRST.lock_until(later())], [0; 2]);
        assert_eq!([FIRST.unlock(), SECOND.unlock()], [0; 2]);
    });
}

/// An attempt takes the first lock, and holds it.
fn after_an_attempt() {
    alone(forward);
    alone(|| {
        assert_eq!([SECOND.try_lock(), FIRST.lock()], [0; 2]);
        assert_eq!([SECOND.unlock(), FIRST.unlock()], [0; 2]);
    });
}

/// A recursive mutex is taken again within another one, which blocks for nothing.
fn recursive() {
    FIRST.init(libc::PTHREAD_MUTEX_RECURSIVE);
    for _ in 0..2 {
        alone(|| {
            assert_eq!([FIRST.lock(), SECOND.lock(), FIRST.lock()], [0; 3]);
            assert_eq!([FIRST.unlock(), SECOND.unlock(), FIRST.unlock()], [0; 3]);
        });
    }
}

/// An error-checking mutex is taken twice by one thread.
fn again() {
    FIRST.init(libc::PTHREAD_MUTEX_ERRORCHECK);
    alone(|| {
        assert_eq!([FIRST.lock(), FIRST.lock()], [0, libc::EDEADLK]);
        assert_eq!([FIRST.unlock(), FIRST.unlock()], [0, libc::EPERM]);
    });
}

/// A read-write lock and a mutex in opposite orders. The lock is taken by `take`.
fn read_write(take: fn(&RwLock)) {
    alone(|| {
        take(&TABLE);
        assert_eq!([FIRST.lock(), FIRST.unlock()], [0; 2]);
        TABLE.unlock();
    });
    alone(|| {
        assert_eq!(FIRST.lock(), 0);
        TABLE.read();
        TABLE.unlock();
        assert_eq!(FIRST.unlock(), 0);
    });
}

/// A thread waits for a condition while it holds another mutex than that of the condition.
fn condition() {
    static CHANGED: Mutex = Mutex::new();
    let mut cond = libc::PTHREAD_COND_INITIALIZER;
    let soon = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // The mutexes in one order: it is the way back from the wait that takes them in the other.
    alone(|| {
        assert_eq!([CHANGED.lock(), FIRST.lock()], [0; 2]);
        // SAFETY: a condition, and a mutex that this thread holds. The time has passed.
        let timed_out = unsafe { libc::pthread_cond_timedwait(&mut cond, CHANGED.0.get(), &soon) };
        assert_eq!(timed_out, libc::ETIMEDOUT);
        assert_eq!([FIRST.unlock(), CHANGED.unlock()], [0; 2]);
    });
    alone(|| nested(&CHANGED, &FIRST));
}

/// A mutex is released by another thread than the one that has taken it.
fn handed_over() {
    alone(forward);
    alone(|| assert_eq!(SECOND.lock(), 0));
    alone(|| assert_eq!(SECOND.unlock(), 0));
    alone(backward);
}

/// Three threads take three mutexes in a ring.
fn ring() {
    alone(forward);
    alone(|| nested(&SECOND, &GATE));
    alone(|| nested(&GATE, &FIRST));
}

/// A thread takes more mutexes than are recorded, and releases them in any order.
fn deep() {
    let mutexes: Vec<Mutex> = (0..40).map(|_| Mutex::new()).collect();
    for _ in 0..2 {
        alone(|| {
            mutexes.iter().for_each(|mutex| assert_eq!(mutex.lock(), 0));
            mutexes.iter().for_each(|mutex| assert_eq!(mutex.unlock(), 0));
        });
    }
    alone(forward);
    alone(backward);
}

/// A child of a fork takes the mutexes in the order that its parent does not.
fn forked() {
    alone(forward);
    // SAFETY: the child takes locks, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        backward();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: writes to `status`.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    // SAFETY: as above. This child has both orders, of which one was seen by its parent's thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        forward();
        let body = || {
            backward();
        };
        alone(body);
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: writes to `status`.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}

/// Two threads block each other for ever. Prints `waiting` when they do.
fn deadlocked() {
    static BOTH: Barrier = Barrier::new(3);
    #[inline(never)]
    fn take(outer: &Mutex, inner: &Mutex) {
        assert_eq!(outer.lock(), 0);
        BOTH.wait();
        assert_eq!(inner.lock(), 0);
    }
    thread::scope(|scope| {
        scope.spawn(|| take(&FIRST, &SECOND));
        scope.spawn(|| take(&SECOND, &FIRST));
        BOTH.wait();
        // The first word of a mutex of the C library is 2 while a thread waits for it.
        let is_waited_for = |mutex: &Mutex| {
            // SAFETY: the word lies in the mutex, and is only used as an atomic one.
            unsafe { AtomicU32::from_ptr(mutex.0.get().cast()) }.load(Ordering::Relaxed) == 2
        };
        while ![&FIRST, &SECOND].into_iter().all(is_waited_for) {
            thread::yield_now();
        }
        println!("waiting");
    });
}

/// Threads take many pairs of mutexes at once, in one order.
fn many() {
    let mutexes: Vec<Mutex> = (0..100).map(|_| Mutex::new()).collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for outer in 0..mutexes.len() {
                    for inner in outer + 1..mutexes.len() {
                        nested(&mutexes[outer], &mutexes[inner]);
                    }
                }
            });
        }
    });
}

/// Prints the nanoseconds of a lock and an unlock: of a mutex alone, of one within another, and of
/// a read-write lock. The least of some rounds.
fn cost(rounds: u32) {
    let time = |body: &dyn Fn()| {
        let once = || {
            let began = Instant::now();
            (0..rounds).for_each(|_| body());
            began.elapsed()
        };
        let least = (0..20).map(|_| once()).min().unwrap_or(Duration::ZERO);
        least.as_nanos() as f64 / f64::from(rounds)
    };
    let pair = |mutex: &Mutex| {
        mutex.lock();
        mutex.unlock();
    };
    let alone = time(&|| pair(&FIRST));
    GATE.lock();
    let within = time(&|| pair(&FIRST));
    GATE.unlock();
    let reading = time(&|| {
        TABLE.read();
        TABLE.unlock();
    });
    println!("mutex {alone:.1} ns, within another {within:.1} ns, read-write lock {reading:.1} ns");
}

pub(crate) fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("opposite") => [forward, backward].into_iter().for_each(alone),
        Some("one-thread") => alone(|| [forward, backward].into_iter().for_each(|body| body())),
        Some("gate") => gate(),
        Some("reused") => reused(true),
        Some("overwritten") => reused(false),
        Some("attempts") => attempts(),
        Some("after-an-attempt") => after_an_attempt(),
        Some("recursive") => recursive(),
        Some("again") => again(),
        Some("writes") => read_write(RwLock::write),
        Some("reads") => read_write(RwLock::read),
        Some("tries-to-write") => read_write(RwLock::try_write),
        Some("condition") => condition(),
        Some("handed-over") => handed_over(),
        Some("ring") => ring(),
        Some("deep") => deep(),
        Some("forked") => forked(),
        Some("many") => many(),
        Some("deadlocked") => deadlocked(),
        Some("cost") => cost(arguments.next().unwrap().parse().unwrap()),
        other => panic!("there is no {other:?}"),
    }
    println!("ok");
}
