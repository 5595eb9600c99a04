//! The data that the locks guard, and the computation of a section.
//!
//! Computation is not simulated: it takes a time given here. The unit is one *turn* of an empty
//! loop. It is 2.5 µs on the Symmetry (table 3.1 of Anderson, Lazowska and Levy 1989), and
//! proportional on faster machines.

use std::cell::Cell;

use stanchion_simulator::inside::{self, Kind};
use stanchion_simulator::{Machine, machines};

/// Table 3.1: "iteration of null loop", in nanoseconds of the Symmetry.
const TURN_NS: f64 = 2_500.0;

/// The share of a turn that is not its one write. The compiled code of that time keeps a loop's
/// counter in memory, so on a write-through machine each increment of it uses the bus. The
/// Symmetry's write is 0.4 µs of the 2.5.
const COMPUTING: f64 = 0.84;

/// Returns the nanoseconds of one turn on `machine`.
pub fn turn(machine: &Machine) -> f64 {
    TURN_NS * machine.scale / machines::symmetry_a(1).scale
}

/// One word of memory that processors share. Every access to it has its simulated cost.
#[derive(Debug, Default)]
pub struct Word(Cell<u64>);

impl Word {
    /// Reads the word.
    pub fn read(&self) -> u64 {
        inside::access((&raw const self.0).cast(), Kind::Read);
        self.0.get()
    }

    /// Writes `value` to the word.
    pub fn write(&self, value: u64) {
        inside::access((&raw const self.0).cast(), Kind::Write);
        self.0.set(value);
    }

    /// Waits until another processor may have written the word.
    pub fn watch(&self) {
        inside::watch((&raw const self.0).cast(), u64::MAX);
    }
}

/// A counter, and words that the other work of a section writes. As in the study on this computer,
/// it is on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Shared {
    /// The counter that each section increments.
    pub counter: Word,
    /// Words that the other work of a section writes, under the lock.
    words: [Word; 15],
}

impl Shared {
    /// Increments the counter from `before`, the value that was read, and compares it with its last
    /// value. A turn of an empty loop does the same to its own counter, so this takes one turn, and
    /// the accesses to memory.
    pub fn count(&self, before: u64, turn: f64) {
        inside::work((COMPUTING * turn) as u64);
        self.counter.write(before + 1);
    }

    /// Does the other work of a section: `turns` turns of a loop. Each turn has one write to shared
    /// data, and one to `turned`, the loop's own counter.
    pub fn work(&self, turns: u32, turn: f64, turned: &Private) {
        for index in 0..turns as usize {
            inside::work((COMPUTING * turn) as u64);
            turned.0.write(index as u64);
            let word = &self.words[index % self.words.len()];
            word.write(word.0.get().wrapping_add(1));
        }
    }
}

/// A variable of one thread, on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Private(Word);
