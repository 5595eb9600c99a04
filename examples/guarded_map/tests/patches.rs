//! Both patches: each acquisition and release of each kind is seen.

use std::thread;

use stanchion_order::{Cycle, report, switch_on};

/// Runs in a thread of its own, and waits for its end.
fn alone(act: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(act).join()).expect("no acquisition panics");
}

/// The cycles with a lock that was created at this line.
fn cycles_of(line: u32) -> Vec<Cycle> {
    let of = |cycle: &Cycle| {
        let held = |step: &stanchion_order::Step| (step.held.place.line(), step.held.created);
        cycle.steps.iter().any(|step| held(step) == (line, true))
    };
    report().cycles.into_iter().filter(of).collect()
}

/// The tests of one version of `lock_api` under one of parking_lot.
macro_rules! tests {
    ($version:ident, $lock_api:ident, $parking_lot:ident) => {
        mod $version {
            use super::*;
            use $lock_api::{
                MutexGuard, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
            };
            use $parking_lot::{Condvar, Mutex, ReentrantMutex, RwLock};

            #[test]
            fn places_are_those_of_the_program() {
                switch_on();
                let (one, two, line) = (Mutex::new(()), RwLock::new(()), line!());
                alone(|| drop((one.lock(), two.write())));
                alone(|| drop((two.read(), one.lock())));
                assert_eq!(cycles_of(line).len(), 1);
                // All lines of a macro are that of its call.
                let (one, two) = (ReentrantMutex::new(()), Mutex::new(()));
                alone(|| drop((one.lock(), one.try_lock(), two.lock())));
                alone(|| drop((two.lock(), one.try_lock(), one.lock())));
                assert_eq!(cycles_of(line).len(), 1, "an attempt blocks for nothing");
                alone(|| drop((two.lock(), one.lock())));
                let cycles = cycles_of(line);
                assert_eq!(cycles.len(), 2);
                for step in cycles.iter().flat_map(|cycle| &cycle.steps) {
                    assert!(step.held_place.file().ends_with("patches.rs"));
                    assert!(step.taken_place.file().ends_with("patches.rs"));
                }
            }

            #[cfg(target_pointer_width = "64")]
            #[test]
            fn a_small_mutex_has_32_bytes() {
                assert_eq!(size_of::<Mutex<u8>>(), 32);
            }

            #[test]
            fn each_release_is_seen() {
                switch_on();
                let before = report().losses;
                let (lock, mutex) = (RwLock::new(0), Mutex::new(0));
                let reentrant = ReentrantMutex::new(0);
                for _ in 0..3 {
                    let mut read = lock.read();
                    RwLockReadGuard::bump(&mut read);
                    RwLockReadGuard::unlocked(&mut read, || ());
                    RwLockReadGuard::unlock_fair(read);
                    let mut write = lock.write();
                    RwLockWriteGuard::bump(&mut write);
                    RwLockWriteGuard::unlocked_fair(&mut write, || ());
                    let upgradable = RwLockWriteGuard::downgrade_to_upgradable(write);
                    let write = RwLockUpgradableReadGuard::upgrade(upgradable);
                    drop(RwLockWriteGuard::map(write, |value| value));
                    let read = RwLockUpgradableReadGuard::downgrade(lock.upgradable_read());
                    drop(RwLockReadGuard::map(read, |value| value));
                    let mut guard = mutex.lock();
                    MutexGuard::bump(&mut guard);
                    MutexGuard::unlocked(&mut guard, || ());
                    drop(MutexGuard::map(guard, |value| value));
                    assert!(mutex.try_lock().is_some() && lock.try_read().is_some());
                    drop((reentrant.lock(), reentrant.lock()));
                }
                assert_eq!(report().losses, before);
            }

            #[test]
            fn the_wait_of_a_condition_loses_no_mutex() {
                switch_on();
                let before = report().losses;
                let (ready, changed) = (Mutex::new(false), Condvar::new());
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut guard = ready.lock();
                        while !*guard {
                            changed.wait(&mut guard);
                        }
                    });
                    scope.spawn(|| {
                        *ready.lock() = true;
                        changed.notify_all();
                    });
                });
                drop(ready.lock());
                assert_eq!(report().losses, before);
            }
        }
    };
}

tests!(version_04, lock_api_04, parking_lot_012);
tests!(version_05, lock_api_05, parking_lot_013);
