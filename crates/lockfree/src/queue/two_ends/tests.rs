//! Tests of the ends.

use super::super::ring::Ring;
use super::super::segmented::Segments;
use super::*;
use crate::barging::BargingAtEnd;

fn ends(capacity: usize) -> TwoEnds<Ring<u32>, BargingAtEnd> {
    let lock = BargingAtEnd::with_policy;
    TwoEnds::new(Ring::with_capacity(capacity), lock(), lock())
}

fn push(ends: &TwoEnds<Ring<u32>, BargingAtEnd>, value: u32) -> bool {
    let Some((_tail, turn)) = ends.tail() else { return false };
    // SAFETY: the lock is held, and the turn is the tail's.
    unsafe { ends.put(turn, value) };
    true
}

fn pop(ends: &TwoEnds<Ring<u32>, BargingAtEnd>) -> Option<u32> {
    let (_head, turn) = ends.head()?;
    // SAFETY: the lock is held, and the turn is the head's.
    Some(unsafe { ends.take(turn) })
}

#[test]
fn a_call_in_vain_needs_both_ends_and_one_that_succeeds_only_its_own() {
    let ends = ends(2);
    let head = ends.head.place.lock();
    assert!(push(&ends, 1) && push(&ends, 2));
    drop(head);
    let tail = ends.tail.place.lock();
    assert_eq!((pop(&ends), pop(&ends)), (Some(1), Some(2)));
    std::thread::scope(|scope| {
        let popper = scope.spawn(|| pop(&ends));
        // A pop that did not ask for the lock would be over by then.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let turn = ends.turn_of_tail(&tail).unwrap();
        // SAFETY: the lock is held, and the turn is the tail's.
        unsafe { ends.put(turn, 3) };
        drop(tail);
        assert_eq!(popper.join().unwrap(), Some(3));
    });
}

#[test]
fn an_end_is_on_one_line() {
    assert!(size_of::<End<BargingAtEnd, <Ring<u32> as Slots>::Place>>() <= 64);
    assert!(size_of::<End<BargingAtEnd, <Segments<u32> as Slots>::Place>>() <= 64);
}

#[test]
fn the_counts_wrap() {
    let mut ends = ends(3);
    for end in [&mut ends.head, &mut ends.tail] {
        end.passed = AtomicUsize::new(usize::MAX - 1);
        end.place.get_mut().get_mut().other = usize::MAX - 1;
    }
    for round in 0..4 {
        assert!((0..3).all(|number| push(&ends, round + number)));
        assert_eq!((push(&ends, 9), ends.len()), (false, 3));
        assert!((0..3).all(|number| pop(&ends) == Some(round + number)));
        assert_eq!((pop(&ends), ends.is_empty()), (None, true));
    }
}
