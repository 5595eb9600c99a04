//! The mutex with real threads: its properties, with each policy of the table.
//!
//! Exclusion is watched by a pair of counters that only the holder touches and that must agree.
//! What could hang runs under [`in_time`](crate::payload::in_time), which reports a lost wake-up
//! instead of waiting for it.

use core::time::Duration;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use crate::common::within;
use crate::payload::{Shared, in_time, rounds, shared};
use stanchion_competitive::policy::Policy;
use stanchion_competitive::{PolicyMutex, RawPolicyMutex};
use stanchion_machine::topology;

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

/// Some lock for good, the others with deadlines that pass at every step of a wait. All that got in
/// are counted, and all come back.
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
                            // Sections from nothing to 20 µs, so that deadlines pass while it is
                            // held, too.
                            stanchion_machine::wait::delay(round % 8 * 2_500);
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

/// Tests a forgotten guard: others time out, its own thread gets an error, and calls that only look
/// do not wait.
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

/// The last of two threads to leave a lock writes over its memory at once, while the other may
/// still be on its way out of the release.
fn freed_while_the_other_leaves<P: Policy + 'static>() {
    /// Two threads meet in each round, which on a busy machine takes turns of its scheduler.
    const LONG: Duration = Duration::from_secs(if cfg!(miri) { 3_600 } else { 600 });

    /// A lock of its own for each round, which ends as junk.
    struct Storage<P: Policy>(std::cell::UnsafeCell<mem::MaybeUninit<PolicyMutex<u32, P>>>);
    // SAFETY: written to by the thread that is left alone with it only.
    unsafe impl<P: Policy> Sync for Storage<P> {}
    // SAFETY: as above.
    unsafe impl<P: Policy> Send for Storage<P> {}
    const JUNK: u8 = 0xA5;

    fn leave<P: Policy>(storage: &Storage<P>, round: u64) {
        let lock: *const PolicyMutex<u32, P> = storage.0.get().cast();
        // SAFETY: two threads come here, and the lock lives until the second has left it.
        let mutex = unsafe { &*lock };
        let mut left = mutex.lock();
        stanchion_machine::wait::delay(round % 5 * 300);
        *left -= 1;
        let last = *left == 0;
        drop(left);
        if !last {
            return;
        }
        let bytes = storage.0.get().cast::<u8>();
        let size = size_of::<Storage<P>>();
        // SAFETY: the other thread has left the lock, and a release does not touch it after that.
        unsafe { bytes.write_bytes(JUNK, size) };
        stanchion_machine::wait::delay(round % 3 * 1_000);
        for at in 0..size {
            // SAFETY: within the storage.
            let byte = unsafe { bytes.add(at) };
            // SAFETY: written above.
            let byte = unsafe { byte.read_volatile() };
            assert_eq!(byte, JUNK, "byte {at} of a freed lock was written to");
        }
    }

    within(LONG, || {
        let fresh = || {
            Storage(std::cell::UnsafeCell::new(mem::MaybeUninit::new(PolicyMutex::<_, P>::new(2))))
        };
        let storages: Arc<Vec<_>> = Arc::new((0..rounds(3_000)).map(|_| fresh()).collect());
        let came = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (storages, came) = (storages.clone(), came.clone());
                thread::spawn(move || {
                    for (round, storage) in (0..).zip(storages.iter()) {
                        // Both at once.
                        came.fetch_add(1, Relaxed);
                        while came.load(Relaxed) < 2 * (round + 1) {
                            thread::yield_now();
                        }
                        leave(storage, round);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Locking in the destructor of a thread-local that is destroyed after all others.
fn locks_while_its_thread_ends<P: Policy + 'static>() {
    struct Last<P: Policy>(Shared<P>, Arc<AtomicU64>);
    impl<P: Policy> Drop for Last<P> {
        fn drop(&mut self) {
            // A panic here would end the process; the count tells.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                for round in 0..rounds(300) {
                    self.0.lock().bump();
                    let timeout = Duration::from_nanos(round * 97 % 20_000);
                    let had = self.0.try_lock_for(timeout).map(|pair| {
                        pair.bump();
                        stanchion_machine::wait::delay(round % 4 * 2_000);
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
                    // Before the thread has a number.
                    LAST.with_borrow_mut(|vec| vec.push(Box::new(last)));
                    mutex.lock().bump();
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(mutex.try_lock().expect("everyone is done").count(), 3 + had.load(Relaxed));
    });
}

macro_rules! properties {
    ([] $({
        $module:ident: $policy:ty,
        name: $name:literal,
        public: $public:tt,
        bytes: $bytes:literal,
        $($rest:tt)*
    })+) => {$(
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

stanchion_competitive::__policies!(properties);
