//! Tests that contention emerges: the loops of Anderson, Lazowska and Levy 1989, section 4, by
//! accesses alone, on the machines' own constants.
//!
//! There is no run here, only processors that take turns in the order of their times. So these are
//! tests of memory systems. The study compares them with the figures of the paper.

use super::*;
use crate::machines;
use crate::{Machine, Time};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

const LOCK: Line = Line(1);
const COUNT: Line = Line(2);

/// The way to wait for the lock.
#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    /// "Spin on xchgb" (section 4.2).
    Exchanging,
    /// "Spin on memory read" (section 4.3).
    Reading,
}

/// The next action of a processor.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Take,
    Look,
    Load,
    Store,
    Release,
}

/// Nanoseconds for each of `sections` critical sections that count, all processors together.
fn section(machine: &Machine, waiting: Waiting, sections: u64) -> u64 {
    let mut system = System::new(machine);
    let mut held = false;
    let mut next: BinaryHeap<_> =
        (0..machine.processors).map(|processor| Reverse((Time::ZERO, processor))).collect();
    let mut steps = vec![Step::Take; machine.processors];
    let mut left = sections;
    loop {
        let Reverse((at, processor)) = next.pop().expect("each processor goes on for ever");
        let step = steps[processor];
        let releases = if machine.release_by_exchange { Kind::Exchange } else { Kind::Write };
        let (line, kind) = match step {
            Step::Take => (LOCK, Kind::Exchange),
            Step::Look => (LOCK, Kind::Read),
            Step::Load => (COUNT, Kind::Read),
            Step::Store => (COUNT, Kind::Write),
            Step::Release => (LOCK, releases),
        };
        let done = system.access(Access { at, processor, line, kind });
        steps[processor] = match step {
            Step::Take if !core::mem::replace(&mut held, true) => Step::Load,
            Step::Take if waiting == Waiting::Exchanging => Step::Take,
            Step::Take => Step::Look,
            Step::Look if held => Step::Look,
            Step::Look => Step::Take,
            Step::Load => Step::Store,
            Step::Store => Step::Release,
            Step::Release => {
                held = false;
                left -= 1;
                if left == 0 {
                    return done.at.as_nanos() / sections;
                }
                Step::Take
            }
        };
        next.push(Reverse((done.at, processor)));
    }
}

/// Few enough to be fast, many enough for the beginning not to matter.
const SECTIONS: u64 = 400;

fn of(machine: Machine, waiting: Waiting) -> u64 {
    section(&machine, waiting, SECTIONS)
}

#[test]
fn symmetry_a_slows_with_each_spinner_once_its_bus_is_full() {
    for waiting in [Waiting::Exchanging, Waiting::Reading] {
        let times =
            [4, 8, 12, 16, 20].map(|processors| of(machines::symmetry_a(processors), waiting));
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[4] > 3 * times[0], "{times:?}");
    }
    // Lock, count, unlock: 2.8 + (0.125 or a miss) + 0.4 + 2.8 us.
    assert_eq!(of(machines::symmetry_a(1), Waiting::Reading), 6_125 + (1_000 - 125) / SECTIONS);
}

#[test]
fn symmetry_b_shows_the_same_harm() {
    // "Much the same effect as with write-through" (section 4.6).
    for waiting in [Waiting::Exchanging, Waiting::Reading] {
        let few = of(machines::symmetry_b(4), waiting);
        let many = of(machines::symmetry_b(20), waiting);
        assert!(many > 3 * few, "{few} {many}");
    }
}

#[test]
fn updates_leave_spinners_that_read_in_peace() {
    // Section 4.6: the bus is filled by exchanges still, but there is no cascade of misses.
    let firefly = |processors| Machine { processors, ..machines::firefly() };
    let reading = [2, 6].map(|processors| of(firefly(processors), Waiting::Reading));
    let exchanging = [2, 6].map(|processors| of(firefly(processors), Waiting::Exchanging));
    assert!(reading[1] < reading[0] * 5 / 4, "{reading:?}");
    assert!(exchanging[1] > exchanging[0] * 5 / 4, "{exchanging:?}");
}
