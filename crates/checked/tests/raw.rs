//! Checked raw locks: parking_lot's have all traits.

use std::thread;
use std::time::Duration;

use lock_api::{Mutex, ReentrantMutex, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
use parking_lot::{RawMutex, RawRwLock, RawThreadId};
use stanchion_checked::order::{Cycle, Mode, Report};
use stanchion_checked::{Checked, mutex, report, rw_lock, switch_on};

type CheckedRwLock = RwLock<Checked<RawRwLock>, ()>;

/// Runs in a thread of its own, and waits for its end.
fn alone(act: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(act).join()).expect("no acquisition panics");
}

/// The cycles with a lock that was created, or first used, at this line.
fn cycles_of(line: u32) -> Vec<Cycle> {
    let of = |cycle: &Cycle| cycle.steps.iter().any(|step| step.held.place.line() == line);
    report().cycles.into_iter().filter(of).collect()
}

#[test]
fn a_cycle_of_mutexes_has_the_places_of_the_program() {
    switch_on();
    let (one, two, line) = (mutex::<RawMutex, _>(1), mutex::<RawMutex, _>(2), line!());
    alone(|| assert_eq!(*one.lock() + *two.lock(), 3));
    alone(|| assert_eq!(*two.lock() + *one.lock(), 3));
    let cycles = cycles_of(line);
    assert_eq!(cycles.len(), 1);
    let step = &cycles[0].steps[0];
    assert!(step.taken_place.file().ends_with("raw.rs"), "{}", step.taken_place);
    let frame = step.path.first_outside().expect("the test is outside");
    assert!(frame.function.starts_with("raw::a_cycle_of_mutexes"), "{frame}");
}

#[test]
fn a_constant_is_named_by_its_first_use() {
    static ONE: Mutex<Checked<RawMutex>, ()> = Mutex::new(());
    static TWO: Mutex<Checked<RawMutex>, ()> = Mutex::new(());
    switch_on();
    let line = line!() + 1;
    alone(|| drop((ONE.lock(), TWO.lock())));
    alone(|| drop((TWO.lock(), ONE.lock())));
    let cycles = cycles_of(line);
    assert_eq!(cycles.len(), 1);
    assert!(!cycles[0].steps[0].held.created);
}

#[test]
fn an_attempt_blocks_for_nothing() {
    switch_on();
    let (one, two, line) = (mutex::<RawMutex, _>(()), mutex::<RawMutex, _>(()), line!());
    alone(|| drop((one.lock(), two.lock())));
    let timeout = Duration::from_secs(60);
    alone(|| drop((two.try_lock().expect("free"), one.try_lock().expect("free"))));
    alone(|| drop((two.try_lock_for(timeout), one.try_lock_for(timeout))));
    assert_eq!(cycles_of(line).len(), 0);
    alone(|| drop((two.try_lock(), one.lock())));
    assert_eq!(cycles_of(line).len(), 1, "what an attempt has taken is held");
}

#[test]
fn readers_and_writers_have_their_modes() {
    switch_on();
    let (one, two, line) = (rw_lock::<RawRwLock, _>(()), rw_lock::<RawRwLock, _>(()), line!());
    alone(|| drop((one.read(), two.write())));
    alone(|| drop((RwLockWriteGuard::downgrade(two.write()), one.write())));
    let cycles = cycles_of(line);
    assert_eq!(cycles.len(), 1);
    let modes: Vec<Mode> = cycles[0].steps.iter().map(|step| step.held_mode).collect();
    assert_eq!(modes, [Mode::Shared; 2]);
}

#[test]
fn an_upgrade_waits_for_readers() {
    switch_on();
    let (one, two, line) = (rw_lock::<RawRwLock, _>(()), rw_lock::<RawRwLock, _>(()), line!());
    let upgrade = |lock: &CheckedRwLock, inside: &CheckedRwLock| {
        let first = lock.upgradable_read();
        let second = inside.write();
        drop((RwLockUpgradableReadGuard::upgrade(first), second));
    };
    alone(|| upgrade(&one, &two));
    alone(|| drop((one.read(), two.read())));
    assert_eq!(cycles_of(line).len(), 1);
}

#[test]
fn every_release_is_seen() {
    switch_on();
    let losses = |report: Report| report.losses.unseen_releases;
    let before = losses(report());
    let lock = rw_lock::<RawRwLock, _>(0);
    let mutex = mutex::<RawMutex, _>(0);
    for _ in 0..3 {
        let mut read = lock.read();
        lock_api::RwLockReadGuard::bump(&mut read);
        lock_api::RwLockReadGuard::unlock_fair(read);
        let mut write = lock.write();
        lock_api::RwLockWriteGuard::unlocked(&mut write, || ());
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(write);
        let write = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect("no reader");
        drop(lock_api::RwLockWriteGuard::map(write, |value| value));
        let read = RwLockUpgradableReadGuard::downgrade(lock.upgradable_read());
        drop(lock_api::RwLockReadGuard::map(read, |value| value));
        let mut guard = mutex.lock();
        lock_api::MutexGuard::bump(&mut guard);
        lock_api::MutexGuard::unlocked_fair(&mut guard, || ());
        lock_api::MutexGuard::unlock_fair(guard);
    }
    assert_eq!(losses(report()), before);
}

#[test]
fn a_reentrant_mutex_is_one_acquisition() {
    switch_on();
    type Reentrant = ReentrantMutex<Checked<RawMutex>, RawThreadId, ()>;
    let line = line!() + 2;
    let lock = Reentrant::new(());
    let (first, second) = (lock.lock(), lock.lock());
    drop((second, first));
    let found = report().recursions;
    assert!(found.iter().all(|found| found.lock.place.line() != line));
}

#[test]
fn the_wait_of_a_condition_releases_its_mutex() {
    switch_on();
    type Condvar = lock_api::Condvar<Checked<parking_lot::RawCondvar>>;
    let before = report().losses.unseen_releases;
    let (ready, changed) = (mutex::<RawMutex, _>(()), Condvar::new());
    let (other, line) = (mutex::<RawMutex, _>(()), line!());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = ready.lock();
            let _other = other.lock();
            // It takes `ready` again while it holds `other`.
            changed.wait(&mut guard);
        });
        // The other thread waits for nothing before it waits for the condition.
        scope.spawn(|| while !changed.notify_one() {});
    });
    alone(|| drop((ready.lock(), other.lock())));
    assert_eq!(cycles_of(line).len(), 1);
    assert_eq!(report().losses.unseen_releases, before);
}

#[test]
fn our_own_locks_are_checked_too() {
    switch_on();
    let one = mutex::<stanchion_competitive::RawMutex, _>(1);
    let (two, line) = (mutex::<stanchion_competitive::RawMutex, _>(2), line!());
    alone(|| drop((one.lock(), two.lock())));
    alone(|| drop((two.lock(), one.lock())));
    assert_eq!(cycles_of(line).len(), 1);
}
