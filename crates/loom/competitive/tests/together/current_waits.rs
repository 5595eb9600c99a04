//! Models of a slot for a wait that goes on: a reader has the words of one wait, and a slot belongs
//! to one thread.

use stanchion_competitive_loom::waits::current::{CurrentWait, Kind, Slot};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A wait in which all words have the same number.
fn wait(number: u32) -> CurrentWait {
    CurrentWait {
        process: number,
        thread: number,
        since_ns: number.into(),
        name: Some(number),
        kind: Kind::Futex,
        address: number.into(),
    }
}

/// Checks that what is read is one of the waits.
fn check(found: Option<CurrentWait>) {
    if let Some(found) = found {
        assert_eq!(found, wait(found.process), "words of several waits");
    }
}

/// A thread waits twice while another one reads.
#[test]
fn a_reader_has_one_wait_bounded() {
    let model = Model::new().preemptions(3);
    explore("current_waits::a_reader_has_one_wait_bounded", model, || {
        let slot = Arc::new(Slot::new());
        let reader = {
            let slot = slot.clone();
            thread::spawn(move || check(slot.read()))
        };
        for number in 1..3 {
            let taken = slot.begin(&wait(number)).expect("no other thread takes it");
            slot.end(taken);
        }
        reader.join().unwrap();
        assert_eq!(slot.read(), None);
    });
}

/// A thread leaves its wait behind. Another one clears it and a third one takes the slot, while a
/// fourth one reads.
#[test]
fn a_wait_of_a_thread_that_is_gone_is_cleared_bounded() {
    let model = Model::new().preemptions(2);
    explore("current_waits::a_wait_of_a_thread_that_is_gone_is_cleared_bounded", model, || {
        let slot = Arc::new(Slot::new());
        let gone = {
            let slot = slot.clone();
            thread::spawn(move || {
                let _left = slot.begin(&wait(1));
            })
        };
        let clears = {
            let slot = slot.clone();
            thread::spawn(move || {
                slot.clear(|process| process == 1);
            })
        };
        let next = {
            let slot = slot.clone();
            thread::spawn(move || {
                if let Some(taken) = slot.begin(&wait(2)) {
                    slot.end(taken);
                }
            })
        };
        check(slot.read());
        [gone, clears, next].into_iter().for_each(|thread| thread.join().unwrap());
        slot.clear(|process| process == 1);
        assert_eq!(slot.read(), None);
    });
}

/// One thread is gone and another one waits in the slot that it had: that wait stays.
#[test]
fn a_wait_is_not_taken_for_that_of_a_thread_before() {
    let name = "current_waits::a_wait_is_not_taken_for_that_of_a_thread_before";
    explore(name, Model::new(), || {
        let slot = Arc::new(Slot::new());
        slot.end(slot.begin(&wait(1)).expect("it is free"));
        let waits = {
            let slot = slot.clone();
            thread::spawn(move || assert!(slot.begin(&wait(2)).is_some()))
        };
        assert!(!slot.clear(|process| process == 1));
        waits.join().unwrap();
        assert_eq!(slot.read(), Some(wait(2)));
    });
}

/// Two threads want the slot while a third one reads: never do two have it.
#[test]
fn a_slot_belongs_to_one_thread_bounded() {
    let model = Model::new().preemptions(3);
    explore("current_waits::a_slot_belongs_to_one_thread_bounded", model, || {
        let slot = Arc::new((Slot::new(), AtomicU32::new(0)));
        let uses = |number: u32| {
            let slot = slot.clone();
            move || {
                if let Some(taken) = slot.0.begin(&wait(number)) {
                    // Relaxed: the slot orders it, if it belongs to one thread.
                    assert_eq!(slot.1.swap(number, Ordering::Relaxed), 0);
                    slot.1.store(0, Ordering::Relaxed);
                    slot.0.end(taken);
                }
            }
        };
        let threads = [thread::spawn(uses(1)), thread::spawn(uses(2))];
        check(slot.0.read());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(slot.0.read(), None);
    });
}
