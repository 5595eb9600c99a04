//! The record of one process. All tests share it, so each looks for the locks of its own lines.

use std::cell::RefCell;
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};
use std::thread;

use stanchion_order::{Cycle, Identity, Mode, report, switch_on};

/// Takes a lock that never blocks.
#[track_caller]
fn take(lock: &Identity, mode: Mode) {
    lock.acquiring(mode);
    lock.acquired(mode);
}

/// Takes the locks one inside the other, and releases them, in a thread of its own.
fn nest(locks: &[(&Identity, Mode)]) {
    let nested = || {
        for &(lock, mode) in locks {
            take(lock, mode);
        }
        for &(lock, mode) in locks.iter().rev() {
            lock.released(mode);
        }
    };
    thread::scope(|scope| scope.spawn(nested).join()).expect("no acquisition panics");
}

/// The cycles with a lock that was created at this line.
fn cycles_of(line: u32) -> Vec<Cycle> {
    let of = |cycle: &Cycle| cycle.steps.iter().any(|step| step.held.place.line() == line);
    report().cycles.into_iter().filter(of).collect()
}

#[inline(never)]
fn first_in_one_order(one: &Identity, two: &Identity) {
    nest(&[(one, Mode::Exclusive), (two, Mode::Exclusive)]);
}

#[inline(never)]
fn then_in_the_other(one: &Identity, two: &Identity) {
    let nested = || {
        take(two, Mode::Exclusive);
        take(one, Mode::Exclusive);
        one.released(Mode::Exclusive);
        two.released(Mode::Exclusive);
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("opposite".to_owned());
        thread.spawn_scoped(scope, nested).expect("a thread is spawned");
    });
}

#[test]
fn a_cycle_names_places_threads_and_functions() {
    switch_on();
    let (one, two, line) = (Identity::new(), Identity::new(), line!());
    first_in_one_order(&one, &two);
    then_in_the_other(&one, &two);
    then_in_the_other(&one, &two);
    let cycles = cycles_of(line);
    assert_eq!(cycles.len(), 1, "it is found once");
    assert!(!cycles[0].needs_writer);
    let opposite = cycles[0].steps.iter().find(|step| step.thread.contains("opposite"));
    let opposite = opposite.expect("the step of the named thread is one of two");
    let frame = opposite.path.first_outside().expect("the test is outside");
    assert_eq!(frame.function, "record::take");
    assert!(opposite.path.to_string().contains("then_in_the_other"), "{}", opposite.path);
    assert!(opposite.held.created && opposite.held_place.file().ends_with("record.rs"));
    let shown = report().to_string();
    assert!(shown.contains("possible deadlock of 2 threads"), "{shown}");
    assert!(shown.contains("then_in_the_other"), "{shown}");
}

#[test]
fn a_gate_keeps_two_orders_apart() {
    switch_on();
    let (gate, one, two, line) = (Identity::new(), Identity::new(), Identity::new(), line!());
    let exclusive = |lock| (lock, Mode::Exclusive);
    nest(&[&gate, &one, &two].map(exclusive));
    nest(&[&gate, &two, &one].map(exclusive));
    assert_eq!(cycles_of(line).len(), 0);
    nest(&[&two, &one].map(exclusive));
    assert_eq!(cycles_of(line).len(), 1, "seen once more, without the gate");
}

#[test]
fn a_lock_is_not_a_later_one_at_its_address() {
    switch_on();
    let line = line!() + 1;
    let mut lock = Box::new(Identity::new());
    let other = Identity::new();
    nest(&[(&lock, Mode::Exclusive), (&other, Mode::Exclusive)]);
    let address = std::ptr::from_ref(&*lock);
    *lock = Identity::new();
    assert_eq!(std::ptr::from_ref(&*lock), address);
    nest(&[(&other, Mode::Exclusive), (&lock, Mode::Exclusive)]);
    assert_eq!(cycles_of(line).len(), 0);
}

#[test]
fn a_lock_that_another_thread_releases_leaves_the_graph_and_is_counted() {
    switch_on();
    let (one, two, line) = (Identity::new(), Identity::new(), line!());
    nest(&[(&one, Mode::Exclusive), (&two, Mode::Exclusive)]);
    let before = report().losses.unseen_releases;
    take(&one, Mode::Exclusive);
    thread::scope(|scope| {
        scope.spawn(|| one.released(Mode::Exclusive));
    });
    assert!(report().losses.unseen_releases > before);
    nest(&[(&two, Mode::Exclusive), (&one, Mode::Exclusive)]);
    assert_eq!(cycles_of(line).len(), 0);
}

#[test]
fn a_lock_that_is_taken_again_was_released_unseen() {
    switch_on();
    let (one, line) = (Identity::new(), line!());
    let of = |report: stanchion_order::Report| {
        report.recursions.into_iter().filter(|found| found.lock.place.line() == line).count()
    };
    take(&one, Mode::Exclusive);
    one.acquiring(Mode::Exclusive);
    assert_eq!(of(report()), 1, "it is told before the thread blocks");
    let before = report().losses.unseen_releases;
    one.acquired(Mode::Exclusive);
    assert_eq!(of(report()), 0, "the thread did not block itself");
    assert!(report().losses.unseen_releases > before);
}

#[test]
fn a_read_inside_of_a_read_is_told_if_a_writer_could_come_between() {
    switch_on();
    let (lock, line) = (Identity::new(), line!());
    take(&lock, Mode::Shared);
    take(&lock, Mode::SharedRecursive);
    let of_lock = || {
        let found = report().recursions.into_iter();
        found.filter(|found| found.lock.place.line() == line).collect::<Vec<_>>()
    };
    assert!(of_lock().is_empty());
    for _ in 0..3 {
        take(&lock, Mode::Shared);
        lock.released(Mode::Shared);
    }
    let found = of_lock();
    assert_eq!(found.len(), 1);
    assert!(!found[0].is_fatal());
    lock.released(Mode::Shared);
    lock.released(Mode::Shared);
}

#[test]
fn locks_of_the_same_places_are_a_hint_and_no_cycle() {
    switch_on();
    let line = line!() + 1;
    let pair = || (Identity::new(), Identity::unplaced());
    let nested = |outer_first: bool| {
        let (one, two) = pair();
        let take_two = || take(&two, Mode::Exclusive);
        // The second lock is named by its first use, which is the same line for both pairs.
        if outer_first {
            take(&one, Mode::Exclusive);
            take_two();
        } else {
            take_two();
            take(&one, Mode::Exclusive);
        }
        one.released(Mode::Exclusive);
        two.released(Mode::Exclusive);
    };
    for outer_first in [true, false] {
        thread::scope(|scope| {
            scope.spawn(|| nested(outer_first));
        });
    }
    assert_eq!(cycles_of(line).len(), 0);
    let hints = report().hints;
    let of_places = hints
        .iter()
        .filter(|hint| hint.steps.iter().any(|step| step.held.place.line() == line))
        .collect::<Vec<_>>();
    assert_eq!(of_places.len(), 1);
    assert!(of_places[0].steps.iter().any(|step| !step.held.created));
}

#[test]
fn a_mode_can_change_and_upgrading_blocks() {
    switch_on();
    let (one, two, line) = (Identity::new(), Identity::new(), line!());
    thread::scope(|scope| {
        scope.spawn(|| {
            take(&one, Mode::Upgradable);
            take(&two, Mode::Exclusive);
            one.upgrading();
            one.changed(Mode::Upgradable, Mode::Exclusive);
            one.changed(Mode::Exclusive, Mode::Shared);
            one.released(Mode::Shared);
            two.released(Mode::Exclusive);
        });
    });
    nest(&[(&one, Mode::Shared), (&two, Mode::Exclusive)]);
    assert_eq!(cycles_of(line).len(), 1, "the upgrade waits for the reader");
}

/// Takes `one` upgradable, then `two`, and upgrades.
fn upgrade_inside(one: &Identity, two: &Identity) {
    let nested = || {
        take(one, Mode::Upgradable);
        take(two, Mode::Exclusive);
        one.upgrading();
        one.changed(Mode::Upgradable, Mode::Exclusive);
        two.released(Mode::Exclusive);
        one.released(Mode::Exclusive);
    };
    thread::scope(|scope| scope.spawn(nested).join()).expect("no acquisition panics");
}

#[test]
fn the_lock_that_is_upgraded_keeps_writers_apart() {
    switch_on();
    let (one, two, line) = (Identity::new(), Identity::new(), line!());
    upgrade_inside(&one, &two);
    upgrade_inside(&one, &two);
    nest(&[(&one, Mode::Exclusive), (&two, Mode::Exclusive)]);
    nest(&[(&one, Mode::Upgradable), (&two, Mode::Exclusive)]);
    assert_eq!(cycles_of(line).len(), 0, "one thread at a time gets past the first lock");
    nest(&[(&one, Mode::Shared), (&two, Mode::Exclusive)]);
    assert_eq!(cycles_of(line).len(), 1, "a reader gets past it");
}

#[test]
fn an_upgrade_seen_before_hides_no_second_acquisition() {
    switch_on();
    let (lock, line) = (Identity::new(), line!());
    take(&lock, Mode::Upgradable);
    lock.upgrading();
    let of_lock =
        || report().recursions.into_iter().filter(|of| of.lock.place.line() == line).count();
    assert_eq!(of_lock(), 0);
    lock.acquiring(Mode::Exclusive);
    assert_eq!(of_lock(), 1);
    lock.released(Mode::Upgradable);
}

#[test]
fn destructors_of_a_thread_and_panics_are_recorded() {
    static ONE: Identity = Identity::new();
    static TWO: Identity = Identity::new();
    let line = line!() - 2;

    /// Takes the locks in the order that no thread has while it runs.
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            take(&TWO, Mode::Exclusive);
            take(&ONE, Mode::Exclusive);
            ONE.released(Mode::Exclusive);
            TWO.released(Mode::Exclusive);
        }
    }
    thread_local! { static LAST: RefCell<Option<AtExit>> = const { RefCell::new(None) } }

    switch_on();
    let panicked = catch_unwind(|| {
        take(&ONE, Mode::Exclusive);
        panic!("with a lock");
    });
    assert!(panicked.is_err());
    take(&TWO, Mode::Exclusive);
    TWO.released(Mode::Exclusive);
    ONE.released(Mode::Exclusive);
    thread::spawn(|| LAST.set(Some(AtExit))).join().expect("the destructor does not panic");
    assert_eq!(cycles_of(line).len(), 1);
}

#[test]
fn too_many_locks_of_one_thread_are_counted() {
    switch_on();
    let line = line!() + 1;
    let locks: Vec<Identity> = (0..70).map(|_| Identity::new()).collect();
    let before = report().losses.too_deep;
    let nested = || {
        locks.iter().for_each(|lock| take(lock, Mode::Exclusive));
        locks[69].changed(Mode::Exclusive, Mode::Shared);
        locks[69].released(Mode::Shared);
        locks[..69].iter().rev().for_each(|lock| lock.released(Mode::Exclusive));
    };
    thread::scope(|scope| scope.spawn(nested).join()).expect("no acquisition panics");
    assert_eq!(report().losses.too_deep - before, 6);
    assert_eq!(cycles_of(line).len(), 0);
    // The last lock is recorded on.
    nest(&[(&locks[69], Mode::Exclusive), (&locks[0], Mode::Exclusive)]);
    assert!(cycles_of(line).iter().any(|cycle| cycle.steps.len() == 2));
}

#[test]
fn threads_that_record_at_the_same_time_find_one_cycle() {
    switch_on();
    let line = line!() + 1;
    let locks = Arc::new([const { Identity::new() }; 2]);
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|index| {
            let (locks, start) = (Arc::clone(&locks), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                for round in 0..200 {
                    let first = (index + round) % 2;
                    // Readers never exclude each other, so no lock is needed below.
                    take(&locks[first], Mode::Shared);
                    take(&locks[1 - first], Mode::Shared);
                    locks[1 - first].released(Mode::Shared);
                    locks[first].released(Mode::Shared);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    let cycles = cycles_of(line);
    assert_eq!(cycles.len(), 1);
    assert!(cycles[0].needs_writer);
}
