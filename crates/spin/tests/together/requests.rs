//! Tests of requests not to be preempted. A request is open only while its lock is held: not after
//! a panic, after a try in vain, or during a wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use stanchion_machine::preemption;
use stanchion_spin::PreemptionSafeMutex;

#[test]
fn a_lock_that_is_had_leaves_one_request() {
    let (one, other) = (PreemptionSafeMutex::new(0), PreemptionSafeMutex::new(0));
    let held = one.lock();
    assert_eq!(preemption::requests(), 1);
    let both = other.try_lock();
    assert_eq!(preemption::requests(), 2);
    drop(held);
    assert_eq!(preemption::requests(), 1);
    drop(both);
    assert_eq!(preemption::requests(), 0);
}

#[test]
fn who_waits_or_tries_in_vain_has_none() {
    let mutex = PreemptionSafeMutex::new(0);
    let held = mutex.lock();
    let (tried, wait) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let mutex = &mutex;
        let other = scope.spawn(move || {
            assert!(mutex.try_lock().is_none());
            assert_eq!(preemption::requests(), 0);
            assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
            assert_eq!(preemption::requests(), 0);
            tried.send(()).expect("the main thread receives");
            *mutex.lock() += 1;
            preemption::requests()
        });
        // The other thread has tried in vain, or has panicked. Most likely it waits by now.
        let _ = wait.recv();
        thread::sleep(Duration::from_millis(2));
        assert_eq!(preemption::requests(), 1);
        drop(held);
        assert_eq!(other.join().unwrap(), 0);
    });
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn a_panic_inside_takes_it_back() {
    let mutex = PreemptionSafeMutex::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _held = mutex.lock();
        std::panic::resume_unwind(Box::new("inside"));
    }));
    assert!(panicked.is_err());
    assert_eq!(preemption::requests(), 0);
}
