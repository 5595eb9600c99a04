//! The tests, each by its name. The statics have names, under which waits for them are recorded.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use libc::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, EBUSY, EDEADLK, EINVAL, EOWNERDEAD, EPERM, ETIMEDOUT, c_int,
    clockid_t, timespec,
};
use objects::{Cond, Mutex};

#[path = "../asleep/mod.rs"]
mod asleep;
mod calls;
mod cancel;
#[path = "../hostile/filter.rs"]
mod filter;
mod forked;
mod objects;
mod signals;

/// Returns the time after `time` from now on `clock`.
fn after(clock: clockid_t, time: Duration) -> timespec {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `now`.
    unsafe { libc::clock_gettime(clock, &mut now) };
    let nanos = now.tv_nsec + i64::from(time.subsec_nanos());
    timespec {
        tv_sec: now.tv_sec + time.as_secs() as i64 + nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    }
}

fn busy(nanos: u64) {
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_nanos(nanos) {
        std::hint::spin_loop();
    }
}

#[unsafe(no_mangle)]
/// A mutex that is recorded under its name.
static STATIC_LOCK: Mutex = Mutex::new();
/// The number of increments under `STATIC_LOCK`.
static STATIC_COUNT: AtomicU64 = AtomicU64::new(0);

/// Increments a counter that only a mutex protects: with a load and a store.
fn increment(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Runs `body` in `threads` threads.
fn on_threads(threads: usize, body: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(&body);
        }
    });
}

/// Lets threads lock the same mutexes. Now and then the holder sleeps, so that they surely meet.
fn contend(threads: usize, rounds: u64) {
    let heap = Mutex::of_type(libc::PTHREAD_MUTEX_DEFAULT);
    let count = AtomicU64::new(0);
    let before = STATIC_COUNT.load(Ordering::Relaxed);
    let arrived = AtomicU64::new(0);
    on_threads(threads, || {
        arrived.fetch_add(1, Ordering::Relaxed);
        for round in 0..rounds {
            STATIC_LOCK.with(|| {
                increment(&STATIC_COUNT);
                if round == 0 {
                    // The first holder waits until all threads are here, so that some thread has to
                    // wait for the lock. Otherwise threads that start one after the other could end
                    // one after the other.
                    while arrived.load(Ordering::Relaxed) < threads as u64 {
                        std::thread::yield_now();
                    }
                }
                if round % 16 == 0 {
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            heap.with(|| {
                increment(&count);
                if round % 16 == 8 {
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
        }
    });
    assert_eq!(STATIC_COUNT.load(Ordering::Relaxed) - before, threads as u64 * rounds);
    assert_eq!(count.load(Ordering::Relaxed), threads as u64 * rounds);
    assert_eq!(heap.destroy(), 0);
}

fn kinds() {
    let recursive = Mutex::of_type(libc::PTHREAD_MUTEX_RECURSIVE);
    assert_eq!([recursive.lock(), recursive.lock(), recursive.try_lock()], [0; 3]);
    let tried = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert_eq!(recursive.try_lock(), EBUSY);
            assert_eq!(recursive.unlock(), EPERM);
            tried.store(true, Ordering::Relaxed);
            recursive.with(|| ());
        });
        sleep_after(&tried, || other.is_finished());
        assert_eq!([recursive.unlock(), recursive.unlock(), recursive.unlock()], [0; 3]);
        other.join().unwrap();
    });
    let checking = Mutex::of_type(libc::PTHREAD_MUTEX_ERRORCHECK);
    assert_eq!([checking.unlock(), checking.lock(), checking.lock()], [EPERM, 0, EDEADLK]);
    assert_eq!([checking.try_lock(), checking.unlock(), checking.unlock()], [EBUSY, 0, EPERM]);

    // SAFETY: attributes that were initialized.
    let robust = Mutex::of_kind(|attributes| unsafe {
        libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST)
    });
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(robust.lock(), 0));
    });
    assert_eq!(robust.lock(), EOWNERDEAD);
    // SAFETY: a robust mutex that this thread holds.
    assert_eq!(unsafe { libc::pthread_mutex_consistent(robust.0.get()) }, 0);
    assert_eq!(robust.unlock(), 0);

    for kind in [libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_DEFAULT, 3] {
        let mutex = Mutex::of_type(kind);
        assert_eq!([mutex.lock(), mutex.try_lock(), mutex.destroy()], [0, EBUSY, EBUSY]);
        assert_eq!([mutex.unlock(), mutex.try_lock(), mutex.unlock()], [0; 3]);
        assert_eq!(mutex.destroy(), 0);
    }
}

/// Sleeps until another thread has set `done` or has ended, and then until it waits, if the machine
/// is not busy.
fn sleep_after(done: &AtomicBool, ended: impl Fn() -> bool) {
    while !done.load(Ordering::Relaxed) && !ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(10));
}

fn timed() {
    let mutex = Mutex::new();
    for clock in [CLOCK_REALTIME, CLOCK_MONOTONIC] {
        let soon = || after(clock, Duration::from_millis(20));
        assert_eq!(mutex.lock_by(clock, soon()), 0);
        let began = std::time::Instant::now();
        let gave_up = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                assert_eq!(mutex.lock_by(clock, soon()), ETIMEDOUT);
                assert!(began.elapsed() >= Duration::from_millis(19), "{:?}", began.elapsed());
                let past = timespec { tv_sec: 1, tv_nsec: 0 };
                assert_eq!(mutex.lock_by(clock, past), ETIMEDOUT);
                let none = timespec { tv_sec: 1, tv_nsec: 1_000_000_000 };
                assert_eq!(mutex.lock_by(clock, none), EINVAL);
                assert_eq!(mutex.lock_until(none), EINVAL);
                assert_eq!(mutex.lock_until(past), ETIMEDOUT);
                gave_up.store(true, Ordering::Relaxed);
                let late = after(CLOCK_REALTIME, Duration::from_secs(60));
                assert_eq!(mutex.lock_until(late), 0);
                assert_eq!(mutex.unlock(), 0);
            });
            sleep_after(&gave_up, || other.is_finished());
            assert_eq!(mutex.unlock(), 0);
        });
    }
    assert_eq!(mutex.lock_by(99, timespec { tv_sec: 1, tv_nsec: 0 }), EINVAL);
}

/// Waits that end by the clock and by a release. They keep the value of `errno` from an earlier
/// call.
fn errno() {
    const MARK: c_int = 77;
    let kept = |what: &str, wait: &dyn Fn() -> c_int| {
        // SAFETY: a thread-local number of the C library.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno = MARK };
        let result = wait();
        // SAFETY: as above.
        let left = unsafe { *errno };
        assert_eq!(left, MARK, "{what}");
        result
    };
    let (mutex, cond) = (Mutex::new(), Cond::new());
    let gave_up = AtomicBool::new(false);
    let soon = || after(CLOCK_REALTIME, Duration::from_millis(5));
    assert_eq!(mutex.lock(), 0);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert_eq!(kept("a lock in vain", &|| mutex.lock_until(soon())), ETIMEDOUT);
            gave_up.store(true, Ordering::Relaxed);
            assert_eq!(kept("a lock", &|| mutex.lock()), 0);
            assert_eq!(kept("an unlock", &|| mutex.unlock()), 0);
        });
        sleep_after(&gave_up, || other.is_finished());
        assert_eq!(kept("an unlock with a waiter", &|| mutex.unlock()), 0);
    });
    assert_eq!(mutex.lock(), 0);
    let waits = || kept("a condition", &|| cond.wait_until(&mutex, soon()));
    while waits() != ETIMEDOUT {}
    assert_eq!(mutex.unlock(), 0);
}

/// Runs two producers and three consumers with a queue of four entries.
fn queue(mutex: &Mutex, rounds: u32) {
    let (filled, emptied) = (Cond::new(), Cond::new());
    let (length, taken) = (AtomicU32::new(0), AtomicU32::new(0));
    let produce = || {
        for _ in 0..rounds * 3 {
            mutex.with(|| {
                while length.load(Ordering::Relaxed) == 4 {
                    assert_eq!(emptied.wait(mutex), 0);
                }
                length.fetch_add(1, Ordering::Relaxed);
            });
            filled.signal();
        }
    };
    let consume = || {
        for _ in 0..rounds * 2 {
            mutex.with(|| {
                while length.load(Ordering::Relaxed) == 0 {
                    assert_eq!(filled.wait(mutex), 0);
                }
                length.fetch_sub(1, Ordering::Relaxed);
                taken.fetch_add(1, Ordering::Relaxed);
                emptied.signal();
            });
        }
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(produce)));
        (0..3).for_each(|_| drop(scope.spawn(consume)));
    });
    assert_eq!(taken.load(Ordering::Relaxed), rounds * 6);
    filled.destroy();
    emptied.destroy();
}

fn conditions() {
    queue(&Mutex::new(), 3_000);
    queue(&Mutex::of_type(libc::PTHREAD_MUTEX_ERRORCHECK), 1_000);
    queue(&Mutex::of_type(libc::PTHREAD_MUTEX_RECURSIVE), 1_000);

    let (mutex, cond) = (Mutex::new(), Cond::new());
    let soon = |clock| after(clock, Duration::from_millis(10));
    assert_eq!(mutex.lock(), 0);
    while cond.wait_until(&mutex, soon(CLOCK_REALTIME)) != ETIMEDOUT {}
    for clock in [CLOCK_REALTIME, CLOCK_MONOTONIC] {
        while cond.wait_by(&mutex, clock, soon(clock)) != ETIMEDOUT {}
    }
    let none = timespec { tv_sec: 1, tv_nsec: -1 };
    assert_eq!(cond.wait_until(&mutex, none), EINVAL);
    assert_eq!(mutex.try_lock(), EBUSY, "it came back with the mutex");
    assert_eq!(mutex.unlock(), 0);
    let checking = Mutex::of_type(libc::PTHREAD_MUTEX_ERRORCHECK);
    assert_eq!(cond.wait(&checking), EPERM, "a mutex that it does not hold");

    // With the clock that the condition variable was made for.
    let monotonic = Cond::new();
    // SAFETY: attributes that were initialized.
    monotonic
        .make(|attributes| unsafe { libc::pthread_condattr_setclock(attributes, CLOCK_MONOTONIC) });
    let began = std::time::Instant::now();
    mutex.with(|| while monotonic.wait_until(&mutex, soon(CLOCK_MONOTONIC)) != ETIMEDOUT {});
    assert!((9..5_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());

    // Destroyed as soon as all waiters are woken. Some of them time out at that moment.
    for round in 0..300 {
        let cond = Box::new(Cond::new());
        let (waiting, go) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (cond, mutex, waiting, go) = (&*cond, &mutex, &waiting, &go);
                scope.spawn(move || {
                    mutex.with(|| {
                        waiting.fetch_add(1, Ordering::Relaxed);
                        let until =
                            after(CLOCK_REALTIME, Duration::from_micros(50 * thread + round));
                        while !go.load(Ordering::Relaxed) {
                            if thread < 2 {
                                assert_eq!(cond.wait(mutex), 0);
                            } else if cond.wait_until(mutex, until) == ETIMEDOUT {
                                break;
                            }
                        }
                        waiting.fetch_sub(1, Ordering::Relaxed);
                    });
                });
            }
            while mutex.with(|| waiting.load(Ordering::Relaxed) < 2 && round % 3 == 0) {}
            mutex.with(|| {
                go.store(true, Ordering::Relaxed);
                cond.broadcast();
            });
            // A thread that has not arrived yet does not wait any more.
        });
        cond.destroy();
        // The next contents of this memory are not the condition variable's.
        // SAFETY: plain bytes that no thread uses any more.
        unsafe { ptr::write_bytes(cond.0.get(), 0x5A, 1) };
    }
}

/// Shares a mutex and a condition variable with the child of a fork.
fn shared() {
    struct Shared {
        mutex: Mutex,
        cond: Cond,
        count: AtomicU64,
        done: AtomicBool,
    }
    // SAFETY: new memory, shared with children.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: large enough and zeros, which all of its fields may be.
    let shared = unsafe { &*memory.cast::<Shared>() };
    // SAFETY: attributes that were initialized.
    shared.mutex.make(|attributes| unsafe {
        libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED)
    });
    // SAFETY: as above.
    shared.cond.make(|attributes| unsafe {
        libc::pthread_condattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED)
    });
    let work = || (0..20_000).for_each(|_| shared.mutex.with(|| increment(&shared.count)));
    let child = fork(&|| {
        work();
        shared.mutex.with(|| {
            shared.done.store(true, Ordering::Relaxed);
            shared.cond.signal();
        });
    });
    work();
    shared.mutex.with(|| {
        while !shared.done.load(Ordering::Relaxed) {
            assert_eq!(shared.cond.wait(&shared.mutex), 0);
        }
        assert_eq!(shared.count.load(Ordering::Relaxed), 40_000);
    });
    wait_for(child);

    // A mutex private to the process, with a shared condition variable.
    let (mutex, done) = (Mutex::new(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            mutex.with(|| {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(shared.cond.wait(&mutex), 0);
                }
            });
        });
        std::thread::sleep(Duration::from_millis(10));
        mutex.with(|| {
            done.store(true, Ordering::Relaxed);
            shared.cond.broadcast();
        });
    });
}

fn fork(body: &dyn Fn()) -> libc::pid_t {
    // SAFETY: the child does only what a test may do.
    match unsafe { libc::fork() } {
        0 => end_after(body),
        child => child,
    }
}

/// Ends the calling process after `body`, also if `body` panics. Unwinding would reach frames of
/// the process's parent.
fn end_after(body: &dyn Fn()) -> ! {
    struct Exit(c_int);

    impl Drop for Exit {
        fn drop(&mut self) {
            // SAFETY: ends the process without exit handlers.
            unsafe { libc::_exit(self.0) }
        }
    }

    let mut exit = Exit(1);
    body();
    exit.0 = 0;
    drop(exit);
    unreachable!("the process has ended")
}

fn wait_for(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: writes to `status`.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's end");
}

/// The mutex that the handlers of `pthread_atfork` hold during each fork.
static FORKED: Mutex = Mutex::new();

/// Forks while threads wait for locks. The children go on with locks and threads.
fn forks() {
    extern "C" fn before() {
        assert_eq!(FORKED.lock(), 0);
    }
    extern "C" fn after() {
        assert_eq!(FORKED.unlock(), 0);
    }
    // SAFETY: functions that may be called at any time.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    FORKED.with(|| busy(2_000));
                }
            });
        }
        for _ in 0..20 {
            let child = fork(&|| {
                for _ in 0..50 {
                    FORKED.with(|| ());
                }
                contend(3, 40);
                let sum = AtomicU64::new(0);
                on_threads(3, || {
                    for _ in 0..200 {
                        FORKED.with(|| {
                            increment(&sum);
                            busy(500);
                        });
                    }
                });
                assert_eq!(sum.load(Ordering::Relaxed), 600);
            });
            wait_for(child);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Forks children in which two threads lock first at the same moment.
fn first_locks() {
    for _ in 0..200 {
        let child = fork(&|| {
            let arrived = AtomicU32::new(0);
            on_threads(2, || {
                let mutex = Mutex::new();
                arrived.fetch_add(1, Ordering::Relaxed);
                while arrived.load(Ordering::Relaxed) < 2 {
                    std::hint::spin_loop();
                }
                mutex.with(|| ());
            });
        });
        wait_for(child);
    }
}

extern "C" fn contender(_: *mut libc::c_void) -> *mut libc::c_void {
    for _ in 0..100 {
        STATIC_LOCK.with(|| std::thread::sleep(Duration::from_micros(50)));
    }
    ptr::null_mut()
}

/// Waits in threads with the smallest stacks possible.
fn small_stacks() {
    let mut attributes = MaybeUninit::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: initializes them.
    assert_eq!(unsafe { libc::pthread_attr_init(attributes) }, 0);
    // SAFETY: initialized.
    assert_eq!(unsafe { libc::pthread_attr_setstacksize(attributes, libc::PTHREAD_STACK_MIN) }, 0);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut thread = 0;
            // SAFETY: the function needs nothing.
            let made = unsafe {
                libc::pthread_create(&mut thread, attributes, contender, ptr::null_mut())
            };
            assert_eq!(made, 0);
            thread
        })
        .collect();
    for thread in threads {
        // SAFETY: made above.
        assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    }
}

/// Waits for more mutexes than the shim has room for.
fn many() {
    for round in 0..40 {
        let mutexes: Vec<Mutex> = (0..200).map(|_| Mutex::new()).collect();
        let count = AtomicU64::new(0);
        on_threads(3, || {
            for mutex in &mutexes {
                mutex.with(|| {
                    busy(2_000);
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 600);
        if round % 2 == 0 {
            // The other mutexes end without `pthread_mutex_destroy`.
            assert!(mutexes.iter().all(|mutex| mutex.destroy() == 0));
        }
    }
    // On a busy machine none of those threads may have met another. One does here.
    for _ in 0..5 {
        let (mutex, comes) = (Mutex::new(), AtomicBool::new(false));
        assert_eq!(mutex.lock(), 0);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                comes.store(true, Ordering::Relaxed);
                mutex.with(|| ());
            });
            sleep_after(&comes, || other.is_finished());
            assert_eq!(mutex.unlock(), 0);
        });
    }
}

pub(crate) fn main() {
    filter::refuse_by_variable();
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "none" => {}
        "alone" => (0..100).for_each(|_| STATIC_LOCK.with(|| ())),
        "contend" => contend(4, 400),
        "kinds" => kinds(),
        "timed" => timed(),
        "errno" => errno(),
        "conditions" => conditions(),
        "shared" => shared(),
        "forks" => forks(),
        "first-locks" => first_locks(),
        "forked-conditions" => forked::conditions(),
        "forked-mutexes" => forked::mutexes(),
        "signals" => signals::storm(),
        "small-stacks" => small_stacks(),
        "many" => many(),
        "calls" => calls::run(),
        "cancel" => cancel::within_a_wait(),
        "cancelled-later" => cancel::after_locks(),
        "exit" => {
            contend(3, 50);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(7) };
        }
        "killed" => {
            contend(3, 50);
            // SAFETY: ends the process at once.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        "exec" => {
            contend(3, 50);
            use std::os::unix::process::CommandExt as _;
            let me = std::env::current_exe().unwrap();
            panic!("{}", std::process::Command::new(me).arg("contend").exec());
        }
        "again" => {
            assert_eq!(STATIC_LOCK.lock(), 0);
            STATIC_LOCK.lock();
        }
        other => panic!("there is no `{other}`"),
    }
    println!("ok");
}
