//! Locks in code that may call no other code: each lock of the default set guards the
//! allocator of its process, under a system call filter that kills a process which opens a file.
//!
//! Each case is a child process, because a first wait's work is done once. The child's threads
//! start before the lock and the filter are in place, so that all their first waits come after.
//! Then one thread holds the lock while all others come to need memory, until they sleep. At last
//! all of them allocate in turns.
//!
//! A lock that allocates would wait for itself. That is not left to chance: a thread in a lock sets
//! a flag, and an allocation that finds it set ends the process with a message.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(miri)))]

use std::cell::Cell;
use std::ffi::c_void;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_competitive::policy::{AlwaysBlock, AlwaysSpin};
use stanchion_competitive::waits::Recorder;
use stanchion_competitive::{
    Condvar, FairMutex, Mutex, Once, PolicyMutex, PolicyRwLock, RawPolicyMutex, RwLock, Semaphore,
};
use stanchion_spin::contention::{Exchange, Polling, Read};
use stanchion_spin::lock_api::Mutex as ApiMutex;
use stanchion_spin::{TestAndSet, TestAndSetMutex};

/// Runs `body` while the lock is held.
type Guard = fn(body: &mut dyn FnMut());

/// The lock that guards the allocator: null, or a `Guard`.
static GUARD: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Set while the thread is in the lock: about to have it, or to release it, or in between.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn guarded<R>(call: impl FnOnce() -> R) -> R {
    let guard = GUARD.load(SeqCst);
    if guard.is_null() {
        return call();
    }
    if INSIDE.replace(true) {
        let said = b"a thread needs memory while it is in the lock that guards the allocator\n";
        // SAFETY: reads as many bytes as there are.
        unsafe { libc::write(2, said.as_ptr().cast(), said.len()) };
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    // SAFETY: not null, so it was stored by `in_child` from a `Guard`.
    let guard = unsafe { std::mem::transmute::<*mut (), Guard>(guard) };
    let (mut call, mut result) = (Some(call), None);
    guard(&mut || result = call.take().map(|call| call()));
    INSIDE.set(false);
    result.expect("the lock runs its body once")
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

// The allocator of the process: these stand for the C library's, which it calls itself, as Rust's
// allocator does.

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the function that this one stands for, as are all below.
    guarded(|| unsafe { __libc_malloc(size) })
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    guarded(|| unsafe { __libc_calloc(count, size) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as above; the block is the caller's.
    guarded(|| unsafe { __libc_realloc(block, size) })
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    guarded(|| unsafe { __libc_memalign(alignment, size) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(
    block: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> libc::c_int {
    let found = aligned_alloc(alignment, size);
    if found.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's word.
    unsafe { *block = found };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: as above; the block is the caller's.
    guarded(|| unsafe { __libc_free(block) });
}

/// Kills the process when any of its threads opens a file. `false` if there are no filters here, as
/// under an emulator.
fn forbid_files() -> bool {
    const fn when(code: u32, k: u32, jt: u8) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf: 0, k }
    }
    let is = |call: libc::c_long, to_the_end: u8| {
        when(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, to_the_end)
    };
    let answer = |what: u32| when(libc::BPF_RET | libc::BPF_K, what, 0);
    let filter = [
        // The number of the call.
        when(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        #[cfg(target_arch = "x86_64")]
        is(libc::SYS_open, 4),
        #[cfg(target_arch = "x86_64")]
        is(libc::SYS_creat, 3),
        is(libc::SYS_openat, 2),
        is(libc::SYS_openat2, 1),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the kernel reads the program, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    result == 0
}

const THREADS: usize = 4;
const ROUNDS: usize = 100;

/// Lets the lock guard the allocator of this process, and ends it with success.
fn in_child(guard: Guard) -> ! {
    static GO: AtomicBool = AtomicBool::new(false);
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    static DONE: AtomicUsize = AtomicUsize::new(0);

    let until = |done: &dyn Fn() -> bool| {
        while !done() {
            thread::yield_now();
        }
    };
    for _ in 0..THREADS {
        thread::spawn(move || {
            WAITING.fetch_add(1, SeqCst);
            until(&|| GO.load(SeqCst));
            WAITING.fetch_add(1, SeqCst);
            for _ in 0..ROUNDS {
                drop(std::hint::black_box(Box::new(0_u64)));
            }
            DONE.fetch_add(1, SeqCst);
            // Not over yet: what ends a thread may free memory, too.
            until(&|| DONE.load(SeqCst) == THREADS);
        });
    }
    until(&|| WAITING.load(SeqCst) == THREADS);
    if !forbid_files() {
        eprintln!("no system call filters here: whether files are opened is not tested");
    }
    GUARD.store(guard as *mut (), SeqCst);
    guarded(|| {
        GO.store(true, SeqCst);
        until(&|| WAITING.load(SeqCst) == 2 * THREADS);
        // The waiters have time to spin, yield and go to sleep: nothing is lost if one has not.
        thread::sleep(Duration::from_millis(50));
    });
    until(&|| DONE.load(SeqCst) == THREADS);
    // SAFETY: ends the process; nothing of it is needed any more.
    unsafe { libc::_exit(0) }
}

const CHILD: &str = "STANCHION_GUARDS_ALLOCATOR";
/// Far longer than a child takes: a deadlock.
const LONG: Duration = Duration::from_secs(120);

/// Runs the test `name` in a child with `guard` as the guard of its allocator. Returns its status
/// and its output.
fn child(name: &str, guard: Guard) -> (ExitStatus, String) {
    if std::env::var_os(CHILD).is_some() {
        in_child(guard);
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > LONG {
            child.kill().unwrap();
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn guards_the_allocator(name: &str, guard: Guard) {
    let (status, said) = child(name, guard);
    // Signal 31 is the filter's, 9 that of a deadlock.
    assert!(status.success(), "{status}: {said}");
    print!("{said}");
}

#[test]
fn a_lock_that_opens_a_file_is_found() {
    let (status, said) = child("a_lock_that_opens_a_file_is_found", |body| {
        // SAFETY: the path ends with a zero.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) };
        body();
    });
    let filtered = !said.contains("no system call filters here");
    assert_eq!(status.signal(), filtered.then_some(libc::SIGSYS), "{status}: {said}");
}

#[test]
fn a_lock_that_allocates_is_found() {
    let (status, said) = child("a_lock_that_allocates_is_found", |body| {
        drop(std::hint::black_box(Box::new(0_u64)));
        body();
    });
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}: {said}");
    assert!(said.contains("a thread needs memory"), "{said}");
}

/// One test for each lock: a static, and how to hold it while the body runs.
macro_rules! cases {
    ($($name:ident: $type:ty = $new:expr, |$lock:ident, $body:ident| $run:expr;)+) => {$(
        #[test]
        fn $name() {
            guards_the_allocator(stringify!($name), |$body| {
                static LOCK: $type = $new;
                let $lock = &LOCK;
                $run;
            });
        }
    )+};
}

/// The most time that a timed try takes: shorter than the wait, so that some fail.
const SHORT: Duration = Duration::from_millis(2);

/// Repeats a timed try.
fn at_last<G>(mut attempt: impl FnMut() -> Option<G>) -> G {
    loop {
        if let Some(guard) = attempt() {
            return guard;
        }
    }
}

const RECORDER: Recorder = Recorder::named("allocator");

/// Defines the tests of the spin locks of the table.
macro_rules! spin_locks {
    ([] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: [$($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?],
        $($rest:tt)*
    })+) => {
        $($(spin_locks!($raw $test $mutex);)?)+
    };
    // Allocates a node for each thread that has waited.
    (Clh $test:ident $mutex:ident) => {};
    ($raw:ident $test:ident $mutex:ident) => {
        cases! {
            $test: stanchion_spin::$mutex<()> = stanchion_spin::$mutex::new(()), |lock, body| {
                let _held = lock.lock();
                body();
            };
        }
    };
}

stanchion_spin::__locks!(spin_locks);

cases! {
    test_and_set_by_exchange: ApiMutex<TestAndSet<Exchange>, ()> =
        ApiMutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    test_and_set_by_reading: ApiMutex<TestAndSet<Read>, ()> =
        ApiMutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    test_and_set_by_polling: ApiMutex<TestAndSet<Polling>, ()> =
        ApiMutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    test_and_set_with_a_deadline: TestAndSetMutex<()> = TestAndSetMutex::new(()), |lock, body| {
        let _held = at_last(|| lock.try_lock_until(Instant::now() + SHORT));
        body();
    };
    mutex: Mutex<()> = Mutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    mutex_with_a_timeout: Mutex<()> = Mutex::new(()), |lock, body| {
        let _held = at_last(|| lock.try_lock_for(SHORT));
        body();
    };
    mutex_with_a_deadline: Mutex<()> = Mutex::new(()), |lock, body| {
        let _held = at_last(|| lock.try_lock_until(Instant::now() + SHORT));
        body();
    };
    mutex_that_blocks: PolicyMutex<(), AlwaysBlock> = PolicyMutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    mutex_that_spins: PolicyMutex<(), AlwaysSpin> = PolicyMutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    mutex_that_records: PolicyMutex<(), Recorder> =
        PolicyMutex::from_raw(RawPolicyMutex::with_policy(RECORDER), ()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    fair_mutex: FairMutex<()> = FairMutex::new(()), |lock, body| {
        let _held = lock.lock();
        body();
    };
    rw_lock: RwLock<()> = RwLock::new(()), |lock, body| {
        let _held = lock.write();
        body();
    };
    rw_lock_with_readers: RwLock<()> = RwLock::new(()), |lock, body| {
        drop(lock.read());
        let _held = lock.write();
        body();
    };
    rw_lock_upgraded: RwLock<()> = RwLock::new(()), |lock, body| {
        let held = lock.upgradable_read();
        let _held = lock_api_upgrade(held);
        body();
    };
    rw_lock_with_a_timeout: RwLock<()> = RwLock::new(()), |lock, body| {
        drop(at_last(|| lock.try_read_for(SHORT)));
        let _held = at_last(|| lock.try_write_for(SHORT));
        body();
    };
    rw_lock_that_blocks: PolicyRwLock<(), AlwaysBlock> = PolicyRwLock::new(()), |lock, body| {
        let _held = lock.write();
        body();
    };
    condvar: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new()), |lock, body| {
        let (taken, released) = lock;
        let mut held = taken.lock();
        while *held {
            released.wait(&mut held);
        }
        *held = true;
        drop(held);
        body();
        *taken.lock() = false;
        released.notify_one();
    };
    condvar_with_a_timeout: (Mutex<bool>, Condvar) =
        (Mutex::new(false), Condvar::new()), |lock, body| {
        let (taken, released) = lock;
        let mut held = taken.lock();
        while *held {
            released.wait_for(&mut held, SHORT);
        }
        *held = true;
        drop(held);
        body();
        *taken.lock() = false;
        released.notify_all();
    };
    once: Once = Once::new(), |lock, body| {
        let mut ran = false;
        lock.call_once(|| {
            body();
            ran = true;
        });
        // Done, so it keeps no thread out; the C library's allocator has locks of its own.
        if !ran {
            body();
        }
    };
    semaphore: Semaphore = Semaphore::new(1), |lock, body| {
        let _permit = lock.acquire();
        body();
    };
    semaphore_with_a_timeout: Semaphore = Semaphore::new(1), |lock, body| {
        let _permit = at_last(|| lock.try_acquire_for(SHORT));
        body();
    };
}

/// Upgrades, which waits for the readers to leave.
fn lock_api_upgrade<'a>(
    held: stanchion_competitive::RwLockUpgradableReadGuard<'a, ()>,
) -> stanchion_competitive::RwLockWriteGuard<'a, ()> {
    stanchion_competitive::RwLockUpgradableReadGuard::upgrade(held)
}
