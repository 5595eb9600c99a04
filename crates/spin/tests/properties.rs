//! Properties of every lock of the crate's table, with real threads.
//!
//! Two atomic counters show exclusion: only the holder touches them, and they must agree. A broken
//! lock has no undefined behaviour then. Each property also fails for a lock broken on purpose.

mod common;

use core::time::Duration;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use common::{Addressed, Racy};
use lock_api::{Mutex, RawMutex, RawMutexTimed};
use stanchion_machine::wait::{Patient, Spin};
use stanchion_spin::contention::MEASURED;
use stanchion_spin::contention::{Exchange, Read};
use stanchion_spin::{Anderson, Clh, Mcs, PreemptionSafe, TestAndSet, Ticket, TimePublishedMcs};

/// Two counters that agree whenever no thread is between them. They are atomic, see above.
#[derive(Debug, Default)]
struct Pair(AtomicU64, AtomicU64);

impl Pair {
    /// Adds one to both, not atomically. Panics if another thread was here.
    fn bump(&self) {
        let first = self.0.load(Relaxed);
        assert_eq!(first, self.1.load(Relaxed), "two threads were inside at once");
        self.0.store(first + 1, Relaxed);
        if first.is_multiple_of(64) {
            // Now and then the holder loses its processor inside the lock.
            thread::yield_now();
        }
        self.1.store(first + 1, Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Returns fewer rounds under Miri, which takes a thousand times as long for each.
fn rounds(times: u64) -> u64 {
    if cfg!(miri) { times.div_ceil(100) } else { times }
}

/// Lets `threads` threads bump a pair `times` times each.
fn excludes<R: RawMutex + Send + Sync>(raw: R, threads: u64, times: u64) {
    let times = rounds(times);
    let mutex = Mutex::<R, _>::from_raw(raw, Pair::default());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..times {
                    mutex.lock().bump();
                }
            });
        }
    });
    assert_eq!(mutex.lock().count(), threads * times);
    assert!(!mutex.is_locked());
}

/// A guard that tells a loop to end when it is dropped, also if the thread that started it panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Lets one thread lock while another only tries. The two are never inside at once.
fn a_try_excludes<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(Pair::default());
    let (tried, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let trier = scope.spawn(|| {
            while !done.load(Relaxed) {
                if let Some(pair) = mutex.try_lock() {
                    pair.bump();
                    tried.fetch_add(1, Relaxed);
                }
            }
        });
        let _end = SetOnDrop(&done);
        for _ in 0..rounds(2_000) {
            mutex.lock().bump();
        }
        while tried.load(Relaxed) == 0 && !trier.is_finished() {
            thread::yield_now();
        }
    });
    assert_eq!(mutex.lock().count(), rounds(2_000) + tried.load(Relaxed));
}

/// Panics while the lock is held: the panic releases the lock, and there is no poison.
fn a_panic_inside_releases<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(Pair::default());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _pair = mutex.lock();
        std::panic::resume_unwind(Box::new("inside"));
    }));
    assert!(panicked.is_err());
    mutex.lock().bump();
    assert_eq!(mutex.try_lock().expect("free again").count(), 1);
}

/// Forgets a guard: the lock stays held. A held lock may be moved, formatted and dropped.
fn a_forgotten_guard_keeps_it_locked<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(7);
    mem::forget(mutex.lock());
    let mutex = Box::new(mutex);
    assert!(mutex.is_locked());
    thread::scope(|scope| {
        assert!(scope.spawn(|| mutex.try_lock().is_none()).join().unwrap());
    });
    assert!(format!("{mutex:?}").contains("<locked>"));
}

/// Holds the lock in a thread that does not run for a while. All waiters wait, and none gets in.
fn waits_for_a_holder_that_sleeps<R: RawMutex + Send + Sync>() {
    let mutex = Mutex::<R, _>::new(Pair::default());
    let held = mutex.lock();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| mutex.lock().bump());
        }
        // Long enough for waiters with the default policy to begin to sleep.
        thread::sleep(Duration::from_millis(10));
        assert_eq!(held.count(), 0);
        drop(held);
    });
    assert_eq!(mutex.lock().count(), 3);
}

/// Runs four threads on one processor: they end, because waiters give the processor to the holder.
fn ends_on_one_processor<R: RawMutex + Send + Sync>() {
    let processor = stanchion_machine::topology::processors()[0];
    let mutex = Mutex::<R, _>::new(Pair::default());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _pinned = stanchion_machine::topology::pin(processor).expect("one of our own");
                for _ in 0..300 {
                    mutex.lock().bump();
                }
            });
        }
    });
    assert_eq!(mutex.lock().count(), 1_200);
}

/// Drops a guard in another thread than the one that locked.
fn a_guard_may_be_sent<R>()
where
    R: RawMutex + Send + Sync,
    R::Guard: Send,
{
    let mutex = Mutex::<R, _>::new(Pair::default());
    thread::scope(|scope| {
        for _ in 0..50 {
            let guard = mutex.lock();
            let waiter = scope.spawn(|| mutex.lock().bump());
            scope.spawn(move || drop(guard));
            waiter.join().unwrap();
        }
    });
    assert_eq!(mutex.lock().count(), 50);
}

/// Locks in the destructor of a thread-local, when the crate's own thread-locals may be gone.
fn locks_while_its_thread_ends<R: RawMutex + Send + Sync + 'static>() {
    struct Last<R: RawMutex + Send + Sync + 'static>(Arc<Mutex<R, Pair>>);
    impl<R: RawMutex + Send + Sync + 'static> Drop for Last<R> {
        fn drop(&mut self) {
            // A panic here would end the process. The count shows the failure instead.
            let _ = catch_unwind(AssertUnwindSafe(|| (0..20).for_each(|_| self.0.lock().bump())));
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Vec<Box<dyn std::any::Any>>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let mutex = Arc::new(Mutex::<R, _>::new(Pair::default()));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let mutex = mutex.clone();
            thread::spawn(move || {
                LAST.with_borrow_mut(|last| last.push(Box::new(Last(mutex.clone()))));
                mutex.lock().bump();
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(mutex.lock().count(), 3 * 21);
}

/// Defines the tests of guards that may be sent. Guards that stay with their thread have none.
macro_rules! sent_guards {
    (stays $lock:ty) => {};
    (asks $lock:ty) => {};
    ($sent:ident $lock:ty) => {
        #[test]
        fn a_guard_may_be_sent() {
            super::a_guard_may_be_sent::<$lock>();
        }
    };
}

macro_rules! properties {
    ($($module:ident: $lock:ty, $guard:ident;)+) => {$(
        mod $module {
            use super::*;

            #[test]
            fn excludes() {
                super::excludes(<$lock as RawMutex>::INIT, 2, 5_000);
            }

            #[test]
            fn excludes_with_four_threads_a_processor() {
                let threads = if cfg!(miri) { 4 } else { 4 * stanchion_machine::topology::parallelism() as u64 };
                super::excludes(<$lock as RawMutex>::INIT, threads.min(64), 300);
            }

            #[test]
            fn a_try_excludes() {
                super::a_try_excludes::<$lock>();
            }

            #[test]
            fn a_panic_inside_releases() {
                super::a_panic_inside_releases::<$lock>();
            }

            #[test]
            fn a_forgotten_guard_keeps_it_locked() {
                super::a_forgotten_guard_keeps_it_locked::<$lock>();
            }

            #[test]
            fn waits_for_a_holder_that_sleeps() {
                super::waits_for_a_holder_that_sleeps::<$lock>();
            }

            #[test]
            #[cfg_attr(miri, ignore = "Miri has no processors to pin a thread to")]
            fn ends_on_one_processor() {
                super::ends_on_one_processor::<$lock>();
            }

            sent_guards!($guard $lock);

            #[test]
            fn locks_while_its_thread_ends() {
                super::locks_while_its_thread_ends::<$lock>();
            }
        }
    )+};
}

/// Defines the tests of each lock of the table.
macro_rules! of_the_table {
    ([] $({
        $module:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: $public:tt,
        guard: $guard:ident,
        $($rest:tt)*
    })+) => {
        properties! { $($module: $lock, $guard;)+ }
    };
}

stanchion_spin::__locks! { of_the_table [], wait: Patient, slots: 8, delay_ns: MEASURED }

// Other parameters than the table's.
properties! {
    anderson_with_fewer_slots_than_waiters: Anderson<2>, carries;
    anderson_with_one_slot: Anderson<1>, carries;
    impatient: Mcs<Patient<0, 0>>, plain;
}

/// Waiters that only pause work too, as long as processors are free.
#[test]
fn a_policy_that_never_yields() {
    excludes(TestAndSet::<Read, Spin>::with_policy(), 2, 2_000);
}

mod wrap_around {
    use super::*;

    #[test]
    fn ticket() {
        excludes(<Ticket>::with_first_ticket(u32::MAX - 3), 4, 50);
    }

    #[test]
    fn anderson() {
        excludes(Anderson::<4>::with_first_ticket(u32::MAX - 3), 4, 50);
        excludes(Anderson::<2>::with_first_ticket(u32::MAX - 3), 4, 50);
        excludes(Anderson::<8>::with_first_ticket(5), 4, 50);
    }

    #[test]
    fn a_try_just_there() {
        let mutex = Mutex::<Ticket, _>::from_raw(Ticket::with_first_ticket(u32::MAX), ());
        let held = mutex.try_lock().expect("free");
        assert!(mutex.try_lock().is_none());
        drop(held);
        assert!(mutex.try_lock().is_some());
        assert!(!mutex.is_locked());
    }
}

mod deadlines {
    use super::*;

    fn of_every_kind<R>()
    where
        R: RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync,
    {
        let mutex = Mutex::<R, _>::new(Pair::default());
        let past = Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or_else(Instant::now);
        // A free lock is acquired whatever the deadline.
        assert!(mutex.try_lock_until(past).is_some());
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
        assert!(mutex.try_lock_for(Duration::MAX).is_some());

        let held = mutex.lock();
        assert!(mutex.try_lock_until(past).is_none());
        assert!(mutex.try_lock_for(Duration::ZERO).is_none());
        let start = Instant::now();
        assert!(mutex.try_lock_for(Duration::from_millis(2)).is_none());
        assert!(start.elapsed() >= Duration::from_millis(2), "gave up early");
        thread::scope(|scope| {
            // The longest timeout reaches beyond the last representable instant.
            let patient = scope.spawn(|| mutex.try_lock_for(Duration::MAX).map(|pair| pair.bump()));
            thread::sleep(Duration::from_millis(1));
            drop(held);
            assert!(patient.join().unwrap().is_some());
        });
        assert_eq!(mutex.lock().count(), 1);
    }

    #[test]
    fn of_every_kind_test_and_set() {
        of_every_kind::<TestAndSet>();
        of_every_kind::<TestAndSet<Exchange>>();
        of_every_kind::<PreemptionSafe>();
    }

    #[test]
    fn of_every_kind_clh() {
        of_every_kind::<Clh>();
    }

    /// Some waiters give up while others wait without a deadline.
    #[test]
    fn a_storm() {
        fn storm<R: RawMutexTimed<Duration = Duration> + Send + Sync>() {
            let mutex = Mutex::<R, _>::new(Pair::default());
            let in_time = AtomicU64::new(0);
            thread::scope(|scope| {
                for thread in 0..6_u64 {
                    let (mutex, in_time) = (&mutex, &in_time);
                    scope.spawn(move || {
                        for round in 0..rounds(400) {
                            let timeout = Duration::from_micros((thread * 7 + round) % 40);
                            let got = if thread < 2 {
                                Some(mutex.lock())
                            } else {
                                mutex.try_lock_for(timeout)
                            };
                            if let Some(pair) = got {
                                pair.bump();
                                in_time.fetch_add(1, Relaxed);
                            }
                        }
                    });
                }
            });
            assert!(!mutex.is_locked());
            assert_eq!(mutex.try_lock().expect("everyone is done").count(), in_time.load(Relaxed));
        }
        storm::<TestAndSet>();
        storm::<Clh>();
    }

    /// The nodes of waiters that gave up are skipped, and freed at the latest with the lock.
    #[test]
    fn a_queue_of_the_gone() {
        let mutex = Mutex::<Clh, _>::new(());
        let held = mutex.lock();
        for _ in 0..rounds(1_000) {
            assert!(mutex.try_lock_for(Duration::ZERO).is_none());
        }
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(mutex.try_lock_for(Duration::from_micros(50)).is_none()));
            }
        });
        assert!(mutex.is_locked());
        drop(held);
        assert!(!mutex.is_locked());
        assert!(mutex.try_lock().is_some());
    }
}

/// A policy that panics ends the process: unwinding would leave a node or the lock behind.
mod a_policy_that_panics {
    use super::*;
    use stanchion_machine::wait::WaitPolicy;
    use std::env;
    use std::process::Command;

    static WAITING: AtomicBool = AtomicBool::new(false);
    static PAUSED: AtomicBool = AtomicBool::new(false);

    /// A policy that panics at its first pause, or when it is dropped.
    struct Hostile<const ON_DROP: bool>;

    impl<const ON_DROP: bool> WaitPolicy for Hostile<ON_DROP> {
        fn start() -> Self {
            WAITING.store(true, Relaxed);
            Self
        }

        fn pause(&mut self) {
            thread::yield_now();
            PAUSED.store(true, Relaxed);
            assert!(ON_DROP, "at a pause");
        }
    }

    impl<const ON_DROP: bool> Drop for Hostile<ON_DROP> {
        fn drop(&mut self) {
            assert!(!ON_DROP, "at the end");
        }
    }

    /// Waits for a held lock. It returns only if the process was not ended.
    fn survive<R: RawMutex + Send + Sync>() {
        let mutex = Mutex::<R, _>::new(());
        let held = mutex.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))));
            // The lock is held until the waiter has paused. So the waiter does wait.
            while !(WAITING.load(Relaxed) && PAUSED.load(Relaxed)) {
                thread::yield_now();
            }
            drop(held);
            let _ = waiter.join();
        });
    }

    /// Expands to the name of each lock of the table, and the function that waits for it.
    macro_rules! by_name {
        ([] $({ $module:ident: $lock:ty, command: $command:literal, $($rest:tt)* })+) => {
            vec![$(($command, survive::<$lock> as fn())),+]
        };
    }

    fn locks<const ON_DROP: bool>() -> Vec<(&'static str, fn())> {
        stanchion_spin::__locks! {
            by_name [], wait: Hostile<ON_DROP>, slots: 4, delay_ns: MEASURED
        }
    }

    const CHILD: &str = "STANCHION_HOSTILE_POLICY";

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn ends_the_process() {
        let all: Vec<_> = locks::<false>().into_iter().chain(locks::<true>()).collect();
        if let Ok(which) = env::var(CHILD) {
            let (_, survive) = all[which.parse::<usize>().unwrap()];
            return survive();
        }
        for (number, (name, _)) in all.into_iter().enumerate() {
            let child = Command::new(env::current_exe().unwrap())
                .args(["--exact", "a_policy_that_panics::ends_the_process", "--nocapture"])
                .env(CHILD, number.to_string())
                .output()
                .unwrap();
            assert!(!child.status.success(), "{name} let the panic out");
        }
    }
}

/// Each property fails for a lock that lacks it.
mod broken_on_purpose {
    use super::*;

    fn fails(property: impl Fn()) -> bool {
        // A race may not occur in one run, so there are several tries.
        (0..50).any(|_| catch_unwind(AssertUnwindSafe(&property)).is_err())
    }

    #[test]
    fn exclusion_is_missed() {
        assert!(fails(|| excludes(Racy::INIT, 2, 2_000)));
        assert!(fails(|| excludes(Racy::INIT, 8, 300)));
        assert!(fails(a_try_excludes::<Racy>));
        assert!(fails(ends_on_one_processor::<Racy>));
    }

    #[test]
    fn a_forgotten_guard_is_missed() {
        assert!(fails(a_forgotten_guard_keeps_it_locked::<Addressed>));
    }

    /// The other properties concern releases: this lock never becomes free again.
    #[test]
    fn a_lost_release_is_missed() {
        struct Lost(Racy);
        // SAFETY: the lock is never given twice.
        unsafe impl RawMutex for Lost {
            const INIT: Self = Self(Racy::INIT);
            type Guard = lock_api::GuardSend;
            fn lock(&self) -> Self::Guard {
                self.try_lock().unwrap_or_else(|| panic!("it is held for ever"))
            }
            fn try_lock(&self) -> Option<Self::Guard> {
                self.0.try_lock()
            }
            unsafe fn unlock(&self, _guard: Self::Guard) {}
            fn is_locked(&self) -> bool {
                self.0.is_locked()
            }
        }
        assert!(fails(a_panic_inside_releases::<Lost>));
        assert!(fails(a_guard_may_be_sent::<Lost>));
        assert!(fails(waits_for_a_holder_that_sleeps::<Lost>));
        assert!(fails(locks_while_its_thread_ends::<Lost>));
    }
}

/// Waiters of a ticket lock that are seen to queue one after the other are served in that order.
#[test]
fn tickets_are_served_in_order() {
    let mutex = Mutex::<Ticket, _>::new(Vec::new());
    let held = mutex.lock();
    thread::scope(|scope| {
        for turn in 0..4 {
            let mutex = &mutex;
            scope.spawn(move || mutex.lock().push(turn));
            // SAFETY: the call only reads counters.
            while unsafe { mutex.raw() }.holders_and_waiters() < turn + 2 {
                thread::yield_now();
            }
        }
        drop(held);
    });
    assert_eq!(*mutex.lock(), [0, 1, 2, 3]);
}

mod bounds {
    use super::*;
    use stanchion_spin::{self as spin, Backoff, Held, Turn};
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::cell::Cell;
    use std::rc::Rc;

    macro_rules! bounds {
        ([] $({
            $module:ident: $lock:ty, command: $command:literal, name: $written:literal,
            public: [$($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?],
            $($rest:tt)*
        })+) => {$($(
            assert_impl_all!(spin::$mutex<Cell<u8>>: Send, Sync);
            assert_not_impl_any!(spin::$mutex<Rc<u8>>: Send, Sync);
            assert_not_impl_any!(spin::$mutex<*mut u8>: Send, Sync);
            assert_not_impl_any!(spin::$mutex<std::sync::MutexGuard<'static, u8>>: Send, Sync);
            assert_not_impl_any!(spin::$guard<'static, Cell<u8>>: Sync);
            assert_not_impl_any!(spin::$guard<'static, Rc<u8>>: Send, Sync);
        )?)+};
    }

    stanchion_spin::__locks!(bounds);

    assert_impl_all!(Held: Send, Sync);
    assert_impl_all!(Turn: Send, Sync);
    assert_impl_all!(Backoff: Send, Sync);

    #[test]
    fn sizes_are_as_documented() {
        assert_eq!(size_of::<TestAndSet>(), 1);
        assert_eq!(size_of::<Ticket>(), 8);
        assert_eq!(size_of::<Mcs>(), 2 * size_of::<usize>());
        assert_eq!(size_of::<Clh>(), 2 * size_of::<usize>());
        assert_eq!(size_of::<TimePublishedMcs>(), 2 * size_of::<usize>());
    }
}
