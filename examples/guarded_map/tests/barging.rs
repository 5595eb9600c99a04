//! The patches of `parking_lot_core`: a thread that is woken from a condition, and finds its mutex
//! taken by a third one, sleeps for the mutex and holds it again.
#![cfg(target_os = "linux")]

use std::sync::mpsc::channel;
use std::thread;

use stanchion_order::current::own;
use stanchion_order::{WaitClass, WaitTotal, report, switch_on};

/// The test of one version of parking_lot.
macro_rules! test {
    ($version:ident, $parking_lot:ident) => {
        #[test]
        fn $version() {
            use $parking_lot::{Condvar, Mutex};
            switch_on();
            let losses = report().losses;
            // True once the waiter may go on, and the number of its wakes.
            let (state, changed) = (Mutex::new((false, 0)), Condvar::new());
            let place = line!();
            let address = &raw const state as u64 + 16;
            let sleeps_for_mutex = || {
                let table = own().expect("there is memory");
                let mut waits = table.threads().into_iter().filter_map(|state| state.wait);
                waits.any(|wait| wait.address == address)
            };
            let (waiting, waits) = channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut guard = state.lock();
                    waiting.send(()).expect("the test receives it");
                    while !guard.0 {
                        changed.wait(&mut guard);
                        guard.1 += 1;
                    }
                    drop(guard);
                });
                waits.recv().expect("the waiter sends it");
                let mut guard = state.lock();
                loop {
                    let wakes = guard.1;
                    changed.notify_one();
                    drop(guard);
                    // The waiter has been woken, and this thread takes the mutex before it.
                    guard = state.lock();
                    if guard.1 == wakes {
                        break;
                    }
                }
                while !sleeps_for_mutex() {
                    thread::yield_now();
                }
                guard.0 = true;
                drop(guard);
            });
            let report = stanchion_order::report();
            assert_eq!(report.losses, losses);
            let is_its = |wait: &&WaitTotal| {
                wait.lock.is_some_and(|lock| lock.created && lock.place.line() == place)
            };
            let its: Vec<_> = report.waits.iter().filter(is_its).collect();
            let of = |class| its.iter().find(|wait| wait.class == class);
            assert!(of(WaitClass::Condition).is_some_and(|wait| wait.count > 0));
            let lock = of(WaitClass::Lock).expect("it has slept for its mutex");
            assert_eq!(lock.address as u64, address);
        }
    };
}

test!(version_09, parking_lot_012);
test!(version_010, parking_lot_013);
