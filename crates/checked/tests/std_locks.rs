//! The locks of `std`, checked.

use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

use stanchion_checked::order::Cycle;
use stanchion_checked::std::{Condvar, Mutex, RwLock, RwLockWriteGuard, TryLockError};
use stanchion_checked::{report, switch_on};

fn alone(act: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(act).join()).expect("no acquisition panics");
}

fn cycles_of(line: u32) -> Vec<Cycle> {
    let of = |cycle: &Cycle| cycle.steps.iter().any(|step| step.held.place.line() == line);
    report().cycles.into_iter().filter(of).collect()
}

#[test]
fn a_cycle_of_a_mutex_and_a_read_write_lock_is_found() {
    switch_on();
    let (mutex, lock, line) = (Mutex::new(1), RwLock::new(2), line!());
    alone(|| drop((mutex.lock(), lock.read())));
    alone(|| drop((lock.read(), mutex.lock())));
    assert_eq!(cycles_of(line).len(), 1);
    let cycles = cycles_of(line);
    assert!(cycles[0].needs_writer, "two readers do not block each other");
    alone(|| drop((lock.write(), mutex.lock())));
    assert!(cycles_of(line).iter().any(|cycle| !cycle.needs_writer));
    let step = &cycles[0].steps[0];
    assert!(step.held_place.file().ends_with("std_locks.rs"));
    assert!(step.path.first_outside().expect("the test is outside").function.contains("a_cycle"));
}

#[test]
fn poison_is_that_of_std() {
    static MUTEX: Mutex<u8> = Mutex::new(1);
    static LOCK: RwLock<u8> = RwLock::new(2);
    switch_on();
    let before = report().losses.unseen_releases;
    let panicked = catch_unwind(|| {
        let _guards = (MUTEX.lock(), LOCK.write());
        panic!("with both held");
    });
    assert!(panicked.is_err() && MUTEX.is_poisoned() && LOCK.is_poisoned());
    assert_eq!(*MUTEX.lock().expect_err("it is poisoned").into_inner(), 1);
    assert!(matches!(MUTEX.try_lock(), Err(TryLockError::Poisoned(_))));
    assert_eq!(*LOCK.read().expect_err("it is poisoned").into_inner(), 2);
    MUTEX.clear_poison();
    LOCK.clear_poison();
    assert_eq!(*MUTEX.lock().expect("it was cleared") + *LOCK.read().expect("cleared"), 3);
    assert_eq!(report().losses.unseen_releases, before);
}

#[test]
fn waits_release_the_mutex_and_downgrades_do_not() {
    switch_on();
    let before = report().losses.unseen_releases;
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    let lock = RwLock::new(());
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = ready.lock().expect("no panic");
            let guard = changed.wait_while(guard, |ready| !*ready).expect("no panic");
            let short = Duration::from_millis(1);
            let (guard, result) =
                changed.wait_timeout_while(guard, short, |ready| *ready).expect("no panic");
            assert!(result.timed_out());
            drop(changed.wait_timeout(guard, short).expect("no panic"));
        });
        scope.spawn(|| {
            *ready.lock().expect("no panic") = true;
            changed.notify_one();
        });
    });
    let reader = RwLockWriteGuard::downgrade(lock.write().expect("no panic"));
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    drop(reader);
    assert!(lock.try_write().is_ok());
    assert_eq!(report().losses.unseen_releases, before);
}

#[test]
fn unsized_values_and_debug_are_those_of_std() {
    let mutex: &Mutex<[u8]> = &Mutex::new([1, 2]);
    assert_eq!(mutex.lock().expect("no panic").len(), 2);
    let of_std = std::sync::Mutex::new(3);
    assert_eq!(format!("{:?}", Mutex::new(3)), format!("{of_std:?}"));
    assert_eq!(
        format!("{:?}", RwLock::<u8>::default()),
        format!("{:?}", std::sync::RwLock::new(0_u8))
    );
    assert_eq!(Mutex::from(3).into_inner().expect("no panic"), 3);
}

#[test]
fn the_locks_have_the_markers_of_std() {
    use std::cell::Cell;
    use std::panic::{RefUnwindSafe, UnwindSafe};

    fn marked<T: Send + Sync + UnwindSafe + RefUnwindSafe>() -> usize {
        size_of::<T>()
    }
    let sizes = [marked::<Mutex<Cell<u8>>>(), marked::<RwLock<u8>>(), marked::<Condvar>()];
    assert!(sizes[2] == size_of::<std::sync::Condvar>(), "it has no identity");
}
