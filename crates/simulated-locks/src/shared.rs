//! What the locks guard, and what a section computes.
//!
//! Computation is not simulated: it takes the time that is said here. The unit is one *turn* of an
//! empty loop, 2.5 µs on the Symmetry (table 3.1 of Anderson, Lazowska and Levy 1989), in
//! proportion on machines that are faster.

use std::cell::Cell;

use stanchion_simulator::inside::{self, Kind};
use stanchion_simulator::{Machine, machines};

/// Table 3.1: "iteration of null loop", in nanoseconds of the Symmetry.
const TURN_NS: f64 = 2_500.0;

/// What of a turn is not its one write: the compiled code of that day keeps a loop's counter in
/// memory, and on a machine that writes through each of its increments is on the bus. The
/// Symmetry's write is 0.4 µs of the 2.5.
const COMPUTING: f64 = 0.84;

/// Nanoseconds of one turn on `machine`.
pub fn turn(machine: &Machine) -> f64 {
    TURN_NS * machine.scale / machines::symmetry_a(1).scale
}

/// One word of memory that processors share; every access of it is charged.
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

    /// Returns when another processor may have written the word.
    pub fn watch(&self) {
        inside::watch((&raw const self.0).cast(), u64::MAX);
    }
}

/// A counter, and words that the other work of a section writes. Like the real study's, on lines of
/// its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Shared {
    /// The counter that each section increments.
    pub counter: Word,
    words: [Word; 15],
}

impl Shared {
    /// Makes the counter one more than `before`, which it was when it was read, and compares it
    /// with its last value: what a turn of an empty loop does to its own counter, so it takes one
    /// turn, and the accesses of memory.
    pub fn count(&self, before: u64, turn: f64) {
        inside::work((COMPUTING * turn) as u64);
        self.counter.write(before + 1);
    }

    /// Other work of a section: `turns` turns of a loop, each with one write to shared data beside
    /// the one to `turned`, the loop's own counter.
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
