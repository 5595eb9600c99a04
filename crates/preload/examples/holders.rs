//! A program with threads that end the waits of others in known ways: `holders WHAT`.
//!
//! With `sleeps`, `computes` and `preempted` a thread holds a lock for [`HELD`] while another one
//! waits: it sleeps, it computes, or it computes on a processor that it shares with busy threads.
//! It does so until it was absent from its processor at most [`ABSENCES`] times in each of
//! [`TIMES`] waits. With `wakers` the first thread ends a wait of each function of the C library.
//! It prints `ok` at its end.

#[cfg(target_os = "linux")]
mod asleep;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("ok");
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::UnsafeCell;
    use std::hint::black_box;
    use std::mem;
    use std::ptr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::asleep::sleeps;

    /// The number of waits of each kind.
    const TIMES: usize = 5;

    /// The time for which a lock is held while a thread waits.
    const HELD: Duration = Duration::from_millis(10);

    /// The absences of a thread that its switch records surely have: they have the last 127. Busy
    /// threads beside this program can preempt it more often.
    const ABSENCES: libc::c_long = 100;

    /// The most waits, on a computer where all of them have more absences.
    const MOST: usize = 100;

    /// The lock that is held.
    static LOCK: Mutex<u64> = Mutex::new(0);

    /// Starts a thread of that name that calls `wait`, and calls `act` once it sleeps.
    fn while_waiting(wait: impl Fn() + Sync, act: impl Fn()) {
        let waiter = AtomicI32::new(0);
        thread::scope(|scope| {
            let run = || {
                // SAFETY: asks for a number.
                waiter.store(unsafe { libc::gettid() }, Ordering::SeqCst);
                wait();
            };
            let started = thread::Builder::new().name("waiter".to_owned()).spawn_scoped(scope, run);
            started.expect("a thread starts");
            loop {
                let thread = waiter.load(Ordering::SeqCst);
                if thread != 0 && sleeps(thread) {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            act();
        });
    }

    /// Computes for so much processor time of this thread.
    fn compute(time: Duration) {
        let until = processor_time() + time;
        while processor_time() < until {
            (0..1_000_u64).for_each(|number| {
                black_box(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            });
        }
    }

    /// Returns the processor time of this thread.
    fn processor_time() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes to `time`.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// Returns how often this thread has left its processor.
    fn absences() -> libc::c_long {
        // SAFETY: plain numbers, for which zeros are a value.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: writes to `usage`.
        assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
        usage.ru_nvcsw + usage.ru_nivcsw
    }

    /// Holds the lock several times while a thread waits for it.
    fn hold(act: impl Fn()) {
        let mut known = 0;
        for _ in 0..MOST {
            let before = absences();
            let held = LOCK.lock();
            let held = UnsafeCell::new(Some(held));
            while_waiting(
                || *LOCK.lock().unwrap() += 1,
                || {
                    act();
                    // SAFETY: only this thread uses it.
                    drop(unsafe { &mut *held.get() }.take());
                },
            );
            known += usize::from(absences() - before <= ABSENCES);
            if known == TIMES {
                return;
            }
        }
    }

    /// An object of the C library that threads share.
    struct Shared<T>(UnsafeCell<T>);

    // SAFETY: its functions may be called by all threads.
    unsafe impl<T> Sync for Shared<T> {}

    impl<T> Shared<T> {
        /// Makes one of zeros, which are its first value in the C library of GNU.
        fn new() -> Self {
            // SAFETY: a structure of numbers and pointers.
            Self(UnsafeCell::new(unsafe { mem::zeroed() }))
        }

        fn get(&self) -> *mut T {
            self.0.get()
        }
    }

    /// Calls a function of the C library, which has to succeed.
    macro_rules! c {
        ($name:ident($($argument:expr),*)) => {{
            // SAFETY: live objects, used as their manual says.
            let result = unsafe { libc::$name($($argument),*) };
            assert!(matches!(result, 0 | libc::PTHREAD_BARRIER_SERIAL_THREAD));
        }};
    }

    /// Ends a wait of each function.
    fn wakers() {
        for _ in 0..TIMES {
            let mutex = Shared::<libc::pthread_mutex_t>::new();
            c!(pthread_mutex_lock(mutex.get()));
            while_waiting(
                || {
                    c!(pthread_mutex_lock(mutex.get()));
                    c!(pthread_mutex_unlock(mutex.get()));
                },
                || c!(pthread_mutex_unlock(mutex.get())),
            );
            let (mutex, cond) = (Shared::new(), Shared::<libc::pthread_cond_t>::new());
            let is_set = AtomicBool::new(false);
            while_waiting(
                || {
                    c!(pthread_mutex_lock(mutex.get()));
                    while !is_set.load(Ordering::SeqCst) {
                        c!(pthread_cond_wait(cond.get(), mutex.get()));
                    }
                    c!(pthread_mutex_unlock(mutex.get()));
                },
                || {
                    c!(pthread_mutex_lock(mutex.get()));
                    is_set.store(true, Ordering::SeqCst);
                    c!(pthread_mutex_unlock(mutex.get()));
                    c!(pthread_cond_signal(cond.get()));
                },
            );
            let table = Shared::<libc::pthread_rwlock_t>::new();
            c!(pthread_rwlock_wrlock(table.get()));
            while_waiting(
                || {
                    c!(pthread_rwlock_rdlock(table.get()));
                    c!(pthread_rwlock_unlock(table.get()));
                },
                || c!(pthread_rwlock_unlock(table.get())),
            );
            let semaphore = Shared::<libc::sem_t>::new();
            c!(sem_init(semaphore.get(), 0, 0));
            while_waiting(|| c!(sem_wait(semaphore.get())), || c!(sem_post(semaphore.get())));
            let barrier = Shared::<libc::pthread_barrier_t>::new();
            c!(pthread_barrier_init(barrier.get(), ptr::null(), 2));
            while_waiting(
                || c!(pthread_barrier_wait(barrier.get())),
                || c!(pthread_barrier_wait(barrier.get())),
            );
            let joined = thread::Builder::new().name("started".to_owned());
            // SAFETY: asks for a number.
            let joiner = unsafe { libc::gettid() };
            let joined = joined.spawn(move || {
                // The first thread sleeps in `join` only.
                while !sleeps(joiner) {
                    thread::sleep(Duration::from_millis(1));
                }
                // SAFETY: asks for this thread.
                let me = unsafe { libc::pthread_self() };
                c!(pthread_setname_np(me, c"joined".as_ptr()));
            });
            let joined = joined.expect("a thread starts");
            joined.join().expect("it ends");
        }
    }

    /// Has all threads that are started from now on run on one processor.
    fn share_a_processor() {
        // SAFETY: plain bits, for which zeros are a value.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        let size = mem::size_of_val(&set);
        // SAFETY: writes to `set`.
        assert_eq!(unsafe { libc::sched_getaffinity(0, size, &mut set) }, 0);
        let allowed = |&at: &usize| {
            // SAFETY: within the set.
            unsafe { libc::CPU_ISSET(at, &set) }
        };
        let first = (0..libc::CPU_SETSIZE as usize).find(allowed).expect("it runs somewhere");
        // SAFETY: as above.
        let mut one: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: within the set.
        unsafe { libc::CPU_SET(first, &mut one) };
        // SAFETY: reads `one`.
        assert_eq!(unsafe { libc::sched_setaffinity(0, size, &one) }, 0);
    }

    pub(super) fn main() {
        match std::env::args().nth(1).as_deref() {
            Some("sleeps") => hold(|| thread::sleep(HELD)),
            Some("computes") => hold(|| compute(HELD)),
            Some("preempted") => {
                share_a_processor();
                let is_over = AtomicBool::new(false);
                thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(|| {
                            while !is_over.load(Ordering::Relaxed) {
                                compute(Duration::from_millis(1));
                            }
                        });
                    }
                    hold(|| compute(HELD));
                    is_over.store(true, Ordering::Relaxed);
                });
            }
            Some("wakers") => wakers(),
            other => panic!("unknown: {other:?}"),
        }
        println!("ok");
    }
}
