//! The mutex with real threads, under every policy.
//!
//! Exclusion is watched by a pair of counters that only the holder touches and that must agree. What could hang runs under [`in_time`], which reports a lost
//! wake-up instead of waiting for it.

use core::time::Duration;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use lock_api::{RawMutex, RawMutexTimed};
use machine::topology;
use stanchion_competitive::policy::{
    Adaptive, AlwaysBlock, AlwaysSpin, Contention, FixedSpin, HolderAware, LastThreeSamples,
    OptimalOnline, OptimalOnlineApproximation, Policy, RandomWalk, Randomized, Wait,
};
use stanchion_competitive::{Mutex, MutexGuard, PolicyMutex, RawPolicyMutex};

/// Two counters that agree whenever nobody is between them. Atomic, so that even a broken lock has no undefined behaviour.
#[derive(Debug, Default)]
struct Pair(AtomicU64, AtomicU64);

impl Pair {
    /// Adds one to both, not atomically; panics if somebody else was here.
    fn bump(&self) {
        let first = self.0.load(Relaxed);
        assert_eq!(first, self.1.load(Relaxed), "two threads were inside at once");
        self.0.store(first + 1, Relaxed);
        if first.is_multiple_of(64) {
            // Now and then the holder loses its processor inside.
            thread::yield_now();
        }
        self.1.store(first + 1, Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

type Shared<P> = Arc<PolicyMutex<Pair, P>>;

fn shared<P: Policy>() -> Shared<P> {
    Arc::new(PolicyMutex::new(Pair::default()))
}

/// Fewer rounds under Miri, which takes a thousand times as long for each.
fn rounds(times: u64) -> u64 {
    if cfg!(miri) { times.div_ceil(100) } else { times }
}

/// Nothing here takes a hundredth of it, on a machine that is not busy.
const LONG: Duration = Duration::from_secs(if cfg!(miri) { 3_600 } else { 60 });

/// Runs `body`; a wait that never ends is a failure, and does not hang the tests.
fn in_time<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let runner = thread::spawn(move || drop(sender.send(body())));
    match receiver.recv_timeout(LONG) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("still waiting after {LONG:?}: a wake-up was lost")
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => match runner.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => panic!("it ended and said nothing"),
        },
    }
}

/// `threads` threads bump a pair `times` times each.
fn counts<P: Policy + 'static>(threads: u64, times: u64, pinned: bool) {
    in_time(move || {
        let times = rounds(times);
        let mutex = shared::<P>();
        let cpu = topology::processors()[0];
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let _pinned = pinned.then(|| topology::pin(cpu).expect("its own processor"));
                    for _ in 0..times {
                        mutex.lock().bump();
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(mutex.lock().count(), threads * times);
        assert!(!mutex.is_locked());
    });
}

/// Some lock for good, the others with deadlines that pass at every step of a wait. All that got in are counted, and all come back.
fn a_storm_of_deadlines<P: Policy + 'static>(threads: u64) {
    in_time(move || {
        let mutex = shared::<P>();
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let mut had = 0;
                    for round in 0..rounds(600) {
                        let timeout = Duration::from_nanos((thread * 7_919 + round * 331) % 60_000);
                        let got = if thread < 2 {
                            Some(mutex.lock())
                        } else {
                            mutex.try_lock_for(timeout)
                        };
                        if let Some(pair) = got {
                            pair.bump();
                            // Sections from nothing to 20 µs, so that deadlines pass while it is held, too.
                            machine::wait::delay(round % 8 * 2_500);
                            had += 1;
                        }
                    }
                    had
                })
            })
            .collect();
        let had: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(mutex.try_lock().expect("everyone is done").count(), had);
    });
}

/// A free lock is had whatever the deadline; a held one is waited for until then, and not for less.
fn deadlines_of_every_kind<P: Policy + 'static>() {
    let mutex = shared::<P>();
    let past = Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or_else(Instant::now);
    assert!(mutex.try_lock_until(past).is_some());
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    assert!(mutex.try_lock_for(Duration::MAX).is_some());
    let held = mutex.lock();
    let other = {
        let mutex = mutex.clone();
        thread::spawn(move || {
            assert!(mutex.try_lock_until(past).is_none());
            assert!(mutex.try_lock_for(Duration::ZERO).is_none());
            let start = Instant::now();
            assert!(mutex.try_lock_for(Duration::from_millis(2)).is_none());
            assert!(start.elapsed() >= Duration::from_millis(2), "gave up early");
        })
    };
    other.join().unwrap();
    let patient = {
        let mutex = mutex.clone();
        // To the end of time, and a little further.
        thread::spawn(move || mutex.try_lock_for(Duration::MAX).map(|pair| pair.bump()).is_some())
    };
    thread::sleep(Duration::from_millis(1));
    drop(held);
    assert!(in_time(move || patient.join().unwrap()));
    assert_eq!(mutex.lock().count(), 1);
}

/// A panic inside releases the lock: there is no poison.
fn a_panic_inside_releases<P: Policy + 'static>() {
    let mutex = shared::<P>();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _pair = mutex.lock();
        resume_unwind(Box::new("inside"));
    }));
    assert!(panicked.is_err());
    mutex.lock().bump();
    assert_eq!(mutex.try_lock().expect("free again").count(), 1);
}

/// A forgotten guard: others time out, its own thread is told, and nothing that only looks waits.
fn a_forgotten_guard_keeps_it_locked<P: Policy + 'static>() {
    let mutex = shared::<P>();
    mem::forget(mutex.lock());
    let other = mutex.clone();
    thread::spawn(move || {
        assert!(other.try_lock().is_none());
        assert!(other.try_lock_for(Duration::from_millis(2)).is_none());
        assert!(format!("{other:?}").contains("<locked>"));
    })
    .join()
    .unwrap();
    let start = Instant::now();
    assert!(mutex.try_lock_for(Duration::from_millis(2)).is_none());
    assert!(start.elapsed() >= Duration::from_millis(2), "its own thread gave up early");
    let told = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).unwrap_err();
    let told = told.downcast_ref::<String>().expect("a message");
    assert!(told.contains("already holds the mutex"), "{told}");
    assert!(mutex.is_locked());
    assert!(format!("{mutex:?}").contains("<locked>"));
    // A held lock may be dropped.
    drop(mutex);
}

/// The last of two threads to leave the lock writes over its memory at once, while the other may still be on its way out of the release.
fn freed_while_the_other_leaves<P: Policy + 'static>() {
    type Place<P> = mem::MaybeUninit<PolicyMutex<u32, P>>;
    struct Shared<P: Policy>(std::cell::UnsafeCell<Place<P>>);
    // SAFETY: written to by the thread that is left alone with it only.
    unsafe impl<P: Policy> Sync for Shared<P> {}
    // SAFETY: as above.
    unsafe impl<P: Policy> Send for Shared<P> {}
    const JUNK: u8 = 0xA5;

    in_time(|| {
        for round in 0..rounds(2_000) {
            let shared =
                Shared(std::cell::UnsafeCell::new(Place::new(PolicyMutex::<_, P>::new(2))));
            let shared = Arc::new(shared);
            let leave = move |shared: &Shared<P>| {
                // SAFETY: two threads come here, and the lock lives until the second has left it.
                let mutex = unsafe { (*shared.0.get()).assume_init_ref() };
                let mut left = mutex.lock();
                machine::wait::delay(round % 5 * 300);
                *left -= 1;
                let last = *left == 0;
                drop(left);
                if !last {
                    return;
                }
                let bytes = shared.0.get().cast::<u8>();
                // SAFETY: the other thread has left the lock, and a release does not touch it after that.
                unsafe { bytes.write_bytes(JUNK, size_of::<Place<P>>()) };
                machine::wait::delay(round % 3 * 1_000);
                for at in 0..size_of::<Place<P>>() {
                    // SAFETY: within the place.
                    let byte = unsafe { bytes.add(at) };
                    // SAFETY: written above.
                    let byte = unsafe { byte.read_volatile() };
                    assert_eq!(byte, JUNK, "byte {at} of a freed lock was written to");
                }
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || leave(&shared))
            };
            leave(&shared);
            other.join().unwrap();
        }
    });
}

/// Locking in the destructor of a thread-local, when the thread has no number any more.
fn locks_while_its_thread_ends<P: Policy + 'static>() {
    static NUMBERLESS: AtomicU64 = AtomicU64::new(0);
    struct Last<P: Policy>(Shared<P>, Arc<AtomicU64>);
    impl<P: Policy> Drop for Last<P> {
        fn drop(&mut self) {
            if machine::thread::index().is_none() {
                NUMBERLESS.fetch_add(1, Relaxed);
            }
            // A panic here would end the process; the count tells.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                for round in 0..rounds(300) {
                    self.0.lock().bump();
                    let timeout = Duration::from_nanos(round * 97 % 20_000);
                    let had = self.0.try_lock_for(timeout).map(|pair| {
                        pair.bump();
                        machine::wait::delay(round % 4 * 2_000);
                    });
                    self.1.fetch_add(1 + u64::from(had.is_some()), Relaxed);
                }
            }));
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Vec<Box<dyn std::any::Any>>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    in_time(|| {
        let (mutex, had) = (shared::<P>(), Arc::new(AtomicU64::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let last = Last(mutex.clone(), had.clone());
                let mutex = mutex.clone();
                thread::spawn(move || {
                    // Before the thread has a number, so that it is destroyed after the number is given back.
                    LAST.with_borrow_mut(|vec| vec.push(Box::new(last)));
                    mutex.lock().bump();
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(mutex.try_lock().expect("everyone is done").count(), 3 + had.load(Relaxed));
        if cfg!(target_os = "linux") {
            assert!(NUMBERLESS.load(Relaxed) > 0, "every thread kept its number to the end");
        }
    });
}

macro_rules! properties {
    ($($module:ident: $policy:ty, $bytes:literal;)+) => {$(
        mod $module {
            use super::*;

            type P = $policy;

            #[test]
            fn two_count() {
                counts::<P>(2, 10_000, false);
            }

            #[test]
            fn four_a_processor_count() {
                let threads = if cfg!(miri) { 4 } else { 4 * topology::parallelism() as u64 };
                counts::<P>(threads.min(64), 300, false);
            }

            #[test]
            #[cfg_attr(miri, ignore = "Miri has no processors to pin a thread to")]
            fn four_on_one_processor_count() {
                counts::<P>(4, 300, true);
            }

            #[test]
            fn three_to_five_with_deadlines() {
                (3..=5).for_each(a_storm_of_deadlines::<P>);
            }

            #[test]
            fn deadlines_of_every_kind() {
                super::deadlines_of_every_kind::<P>();
            }

            #[test]
            fn a_panic_inside_releases() {
                super::a_panic_inside_releases::<P>();
            }

            #[test]
            fn a_forgotten_guard_keeps_it_locked() {
                super::a_forgotten_guard_keeps_it_locked::<P>();
            }

            #[test]
            #[cfg_attr(miri, ignore = "a reference to a lock may outlast it during the release, which Miri takes for a use")]
            fn freed_while_the_other_leaves() {
                super::freed_while_the_other_leaves::<P>();
            }

            #[test]
            fn locks_while_its_thread_ends() {
                super::locks_while_its_thread_ends::<P>();
            }

            #[test]
            fn is_small_and_a_constant() {
                static EMPTY: PolicyMutex<(), P> = PolicyMutex::new(());
                drop(EMPTY.lock());
                assert!(!EMPTY.is_locked());
                assert_eq!(size_of::<RawPolicyMutex<P>>(), $bytes);
            }
        }
    )+};
}

properties! {
    always_block: AlwaysBlock, 8;
    always_spin: AlwaysSpin, 8;
    fixed_spin: FixedSpin, 8;
    fixed_spin_of_half: FixedSpin<50>, 8;
    optimal_online: OptimalOnline, 12;
    optimal_online_approximation: OptimalOnlineApproximation, 12;
    last_three_samples: LastThreeSamples, 12;
    random_walk: RandomWalk, 12;
    randomized: Randomized, 8;
    holder_aware: HolderAware, 12;
    adaptive: Adaptive, 12;
}

/// A policy that notes what it is asked, blocks at once, and panics for the first that asks at `where_`.
struct Faulty<const WHERE: u8> {
    asked: AtomicU32,
    panicked: AtomicBool,
}

const NOWHERE: u8 = 0;
const AT_ONCE: u8 = 1;
const WHEN_WOKEN: u8 = 2;
const WHILE_SPINNING: u8 = 3;
const AT_THE_END: u8 = 4;

impl<const WHERE: u8> Faulty<WHERE> {
    fn panics_if(&self, wrong: bool) {
        if wrong && !self.panicked.swap(true, Relaxed) {
            // Prints nothing.
            resume_unwind(Box::new("the policy's"));
        }
    }
}

impl<const WHERE: u8> Policy for Faulty<WHERE> {
    const INIT: Self = Self { asked: AtomicU32::new(0), panicked: AtomicBool::new(false) };

    fn threshold(&self, contention: &Contention) -> u64 {
        self.panics_if(WHERE == AT_ONCE || WHERE == WHEN_WOKEN && contention.blocks() > 0);
        self.asked.fetch_add(1, Relaxed);
        if WHERE == WHILE_SPINNING { 50_000 } else { 0 }
    }

    fn keep_spinning(&self, _contention: &Contention) -> bool {
        self.panics_if(WHERE == WHILE_SPINNING);
        true
    }

    fn adjust(&self, _wait: &Wait) {
        self.panics_if(WHERE == AT_THE_END);
    }

    fn name(&self) -> Option<&str> {
        Some("a faulty one")
    }
}

/// Returns when `count` threads have gone to sleep on the lock, or are about to.
fn wait_for_sleepers<const WHERE: u8>(mutex: &PolicyMutex<impl Sized, Faulty<WHERE>>, count: u32) {
    // SAFETY: only looks.
    let policy = unsafe { mutex.raw() }.policy();
    while policy.asked.load(Relaxed) < count {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(10));
}

/// One of four waiters meets the panic. It gets nothing and takes nothing along: the other three have the lock, and it is free in the end.
fn a_policy_panics<const WHERE: u8>(fair: bool) {
    in_time(move || {
        let mutex = shared::<Faulty<WHERE>>();
        let held = mutex.lock();
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    catch_unwind(AssertUnwindSafe(|| mutex.lock().bump())).is_ok()
                })
            })
            .collect();
        wait_for_sleepers(&mutex, if WHERE == AT_ONCE { 3 } else { 4 });
        if WHERE == WHEN_WOKEN {
            // Wakes the first, which finds the lock held again, and may be handed it as it asks what to do.
            drop(held);
            for _ in 0..3 {
                let mut held = mutex.lock();
                machine::wait::delay(20_000);
                lock_api::MutexGuard::bump(&mut held);
                drop(held);
            }
        } else if fair {
            lock_api::MutexGuard::unlock_fair(held);
        } else {
            drop(held);
        }
        let had = waiters.into_iter().filter(|_| true).map(|waiter| waiter.join().unwrap());
        let had = had.filter(|had| *had).count() as u64;
        // SAFETY: only looks.
        let panicked = unsafe { mutex.raw() }.policy().panicked.load(Relaxed);
        assert_eq!(had, 4 - u64::from(panicked));
        // Whether anyone is woken in vain is up to the machine.
        assert!(panicked || WHERE == WHEN_WOKEN);
        assert_eq!(mutex.try_lock().expect("everyone is done").count(), had);
    });
}

#[test]
fn a_policy_that_panics_takes_nothing_along() {
    for fair in [false, true] {
        a_policy_panics::<AT_ONCE>(fair);
        a_policy_panics::<WHEN_WOKEN>(fair);
        a_policy_panics::<WHILE_SPINNING>(fair);
        a_policy_panics::<AT_THE_END>(fair);
    }
}

#[test]
fn who_waits_for_itself_is_told_for_which_lock() {
    let mutex = PolicyMutex::<_, Faulty<NOWHERE>>::new(0);
    let held = mutex.lock();
    let told = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).unwrap_err();
    assert!(told.downcast_ref::<String>().expect("a message").contains("`a faulty one`"));
    drop(held);
    assert!(!mutex.is_locked());
}

/// A thread that ended with the lock held: nobody has it any more, neither a stranger nor a thread with the same number, which is told why.
#[test]
fn a_thread_that_ends_with_the_lock_keeps_it() {
    let mutex = shared::<AlwaysBlock>();
    let ending = mutex.clone();
    thread::spawn(move || mem::forget(ending.lock())).join().unwrap();
    // SAFETY: only looks.
    let number = unsafe { mutex.raw() }.holder().expect("held by a thread with a number");
    let mut namesake = false;
    for _ in 0..10_000 {
        let mutex = mutex.clone();
        let next = thread::spawn(move || {
            let same = machine::thread::index() == Some(number);
            if same {
                let told = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).unwrap_err();
                let told = told.downcast_ref::<String>().expect("a message");
                assert!(told.contains("or one that ended without releasing it"), "{told}");
            }
            assert!(mutex.try_lock().is_none());
            assert!(mutex.try_lock_for(Duration::from_micros(50)).is_none());
            same
        });
        namesake = next.join().unwrap();
        if namesake {
            break;
        }
    }
    assert!(namesake, "the number {number} was not used again");
    assert!(mutex.is_locked());
}

/// Sleepers are handed the lock in the order in which they came, if every release is in turn, whoever else tries.
#[test]
fn releases_in_turn_serve_in_order() {
    in_time(|| {
        let mutex = Arc::new(PolicyMutex::<_, Faulty<NOWHERE>>::new(Vec::new()));
        let held = mutex.lock();
        let waiters: Vec<_> = (0..4)
            .map(|turn| {
                let waiter = {
                    let mutex = mutex.clone();
                    thread::spawn(move || {
                        let mut turns = mutex.lock();
                        turns.push(turn);
                        lock_api::MutexGuard::unlock_fair(turns);
                    })
                };
                wait_for_sleepers(&mutex, turn + 1);
                waiter
            })
            .collect();
        let over = Arc::new(AtomicBool::new(false));
        let trier = {
            let (mutex, over) = (mutex.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    if let Some(turns) = mutex.try_lock() {
                        lock_api::MutexGuard::unlock_fair(turns);
                    }
                }
            })
        };
        lock_api::MutexGuard::unlock_fair(held);
        for waiter in waiters {
            waiter.join().unwrap();
        }
        over.store(true, Relaxed);
        trier.join().unwrap();
        assert_eq!(*mutex.lock(), [0, 1, 2, 3]);
    });
}

/// A thread that takes the lock again as soon as it has released it does not keep a sleeper out: after 10 ms it is handed over.
#[test]
#[cfg_attr(miri, ignore = "of wall time")]
fn a_sleeper_is_not_kept_out_for_long() {
    let (longest, sections) = in_time(|| {
        let (mutex, over) = (shared::<AlwaysBlock>(), Arc::new(AtomicBool::new(false)));
        let barging = {
            let (mutex, over) = (mutex.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    mutex.lock().bump();
                }
            })
        };
        let (mut longest, mut waits) = (Duration::ZERO, 0);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(500) {
            let came = Instant::now();
            mutex.lock().bump();
            longest = longest.max(came.elapsed());
            waits += 1;
        }
        over.store(true, Relaxed);
        barging.join().unwrap();
        println!("{waits} waits, the longest {longest:?}");
        (longest, mutex.lock().count())
    });
    assert!(sections > 1_000, "{sections} sections: nobody barged");
    // 10 ms, and what a busy machine takes to let two threads run.
    assert!(longest < Duration::from_secs(1), "kept out for {longest:?}");
}

/// Many locks, many of which share a place where threads sleep: each wakes its own.
#[test]
fn locks_that_sleep_in_one_place_wake_their_own() {
    in_time(|| {
        let locks: Arc<Vec<_>> = Arc::new(
            (0..rounds(4_096)).map(|_| PolicyMutex::<_, AlwaysBlock>::new(0_u64)).collect(),
        );
        let workers: Vec<_> = (0..4_u64)
            .map(|worker| {
                let locks = locks.clone();
                thread::spawn(move || {
                    for round in 0..rounds(200) {
                        // Locks whose addresses lie a multiple of the table's size apart.
                        for lock in locks.iter().skip(((worker + round) % 2) as usize).step_by(512)
                        {
                            let mut count = lock.lock();
                            *count += 1;
                            if *count % 32 == 0 {
                                thread::yield_now();
                            }
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        let had: u64 = locks.iter().map(|lock| *lock.try_lock().expect("everyone is done")).sum();
        let each: u64 =
            (0..2).map(|skip| locks.iter().skip(skip).step_by(512).count() as u64).sum();
        assert_eq!(had, 2 * rounds(200) * each);
    });
}

mod bounds {
    use super::*;
    use stanchion_competitive::{MappedMutexGuard, MappedPolicyMutexGuard, PolicyMutexGuard};
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::cell::Cell;
    use std::panic::{RefUnwindSafe, UnwindSafe};
    use std::rc::Rc;

    /// `Send` and not `Sync`, neither, `Sync` and not `Send`, and both.
    type SendOnly = Cell<u8>;
    type Neither = Rc<u8>;
    type SyncOnly = std::sync::MutexGuard<'static, u8>;
    type Both = u8;

    macro_rules! bounds {
        ($($mutex:ident, $guard:ident, $mapped:ident $(, $policy:ty)?;)+) => {$(
            assert_impl_all!($mutex<Both $(, $policy)?>: Send, Sync);
            assert_impl_all!($mutex<SendOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mutex<Neither $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mutex<SyncOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mutex<*mut u8 $(, $policy)?>: Send, Sync);
            // The lock knows its holder's number, so a guard stays with its thread.
            assert_not_impl_any!($guard<'static, Both $(, $policy)?>: Send);
            assert_not_impl_any!($guard<'static, SendOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($guard<'static, Neither $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($guard<'static, SyncOnly $(, $policy)?>: Send, Sync);
            assert_impl_all!($guard<'static, Both $(, $policy)?>: Sync);
            assert_not_impl_any!($mapped<'static, Both $(, $policy)?>: Send);
            assert_not_impl_any!($mapped<'static, SendOnly $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mapped<'static, Neither $(, $policy)?>: Send, Sync);
            assert_not_impl_any!($mapped<'static, SyncOnly $(, $policy)?>: Send);
            assert_impl_all!($mapped<'static, Both $(, $policy)?>: Sync);
            assert_impl_all!($mapped<'static, SyncOnly $(, $policy)?>: Sync);
        )+};
    }

    bounds! {
        Mutex, MutexGuard, MappedMutexGuard;
        PolicyMutex, PolicyMutexGuard, MappedPolicyMutexGuard, AlwaysBlock;
        PolicyMutex, PolicyMutexGuard, MappedPolicyMutexGuard, OptimalOnlineApproximation;
    }

    assert_impl_all!(RawPolicyMutex<Adaptive>: RawMutex, RawMutexTimed, Default, std::fmt::Debug, Send, Sync, UnwindSafe, RefUnwindSafe);
}
