//! The holders of locks, and the threads that want them, as `stanchion stalls` reads them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use stanchion_checked::order::Mode;
use stanchion_checked::order::current::{ThreadState, own};
use stanchion_checked::{mutex, std as checked, switch_on};

/// Returns the threads for which `is_it` is true, as soon as there is one.
fn until(is_it: impl Fn(&ThreadState) -> bool) -> ThreadState {
    let table = own().expect("this system has such memory");
    loop {
        if let Some(found) = table.threads().into_iter().find(&is_it) {
            return found;
        }
        thread::yield_now();
    }
}

#[test]
fn a_lock_of_std_has_its_holder_and_the_thread_that_wants_it() {
    switch_on();
    let (lock, line) = (checked::RwLock::new(0), line!());
    let place = format!("tests/stalls.rs:{line}:");
    let is_it = |created: &Option<String>| created.as_ref().is_some_and(|at| at.contains(&place));
    thread::scope(|scope| {
        let held = lock.read().expect("no panic");
        scope.spawn(|| *lock.write().expect("no panic") += 1);
        let wants = until(|state| {
            state.awaited.as_ref().is_some_and(|awaited| is_it(&awaited.lock.created))
        });
        let holds = until(|state| state.held.iter().any(|lock| is_it(&lock.created)));
        assert_eq!(holds.held.last().and_then(|lock| lock.mode), Some(Mode::Shared));
        let awaited = wants.awaited.expect("it is awaited");
        assert_eq!((awaited.lock.mode, awaited.is_condition), (Some(Mode::Exclusive), false));
        assert_ne!(wants.thread, holds.thread);
        drop(held);
    });
}

#[test]
fn the_wait_for_a_condition_holds_no_mutex() {
    switch_on();
    let (lock, changed, line) = (checked::Mutex::new(false), checked::Condvar::new(), line!());
    let place = format!("tests/stalls.rs:{line}:");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = lock.lock().expect("no panic");
            while !*guard {
                guard = changed.wait(guard).expect("no panic");
            }
        });
        let waits = until(|state| {
            let awaited = state.awaited.as_ref().filter(|awaited| awaited.is_condition);
            awaited
                .and_then(|awaited| awaited.lock.created.as_ref())
                .is_some_and(|at| at.contains(&place))
        });
        assert!(waits.held.is_empty(), "{waits:?}");
        *lock.lock().expect("no panic") = true;
        changed.notify_one();
    });
}

#[test]
fn an_attempt_with_a_time_wants_the_lock_until_it_gives_up() {
    switch_on();
    let (lock, line) = (mutex::<parking_lot::RawMutex, _>(()), line!());
    let place = format!("tests/stalls.rs:{line}:");
    let wants = |state: &ThreadState| {
        let created = state.awaited.as_ref().and_then(|awaited| awaited.lock.created.as_ref());
        created.is_some_and(|at| at.contains(&place))
    };
    thread::scope(|scope| {
        let held = lock.lock();
        let (gave_up, has_given_up) = channel();
        let lock = &lock;
        scope.spawn(move || {
            let (short, long) = (Duration::from_millis(1), Duration::from_secs(600));
            assert!(lock.try_lock_for(short).is_none());
            gave_up.send(own().expect("it is there").threads()).expect("it is received");
            assert!(lock.try_lock_for(long).is_some());
        });
        let threads = has_given_up.recv().expect("it is sent");
        assert!(!threads.iter().any(wants), "{threads:?}");
        until(wants);
        drop(held);
    });
}
