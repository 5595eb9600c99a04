//! The current turn in one word: which slot is on, which turn it is, and when it ends.
//!
//! ```text
//! end (40 bits; 0: open) | epoch (16 bits) | slot (8 bits)
//! ```
//!
//! Times are counted in units of [`UNIT_NS`] since the scheduler began. 40 bits of them are 13
//! days, after which they wrap around.

/// A turn of a slot. It is open if no other slot waits for its own turn: then it has no end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn(u64);

/// Nanoseconds in a unit of time: 1.024 µs.
pub(crate) const UNIT_NS: u64 = 1 << 10;

const SLOT_BITS: u32 = 8;
const EPOCH_BITS: u32 = 16;
const TURN_BITS: u32 = SLOT_BITS + EPOCH_BITS;
const TIME_BITS: u32 = u64::BITS - TURN_BITS;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// Returns the units of time in `nanos`. Never 0, which stands for no time.
pub(crate) fn time(nanos: u64) -> u64 {
    ((nanos / UNIT_NS) & TIME).max(1)
}

impl Turn {
    /// The first turn: slot 0, open.
    pub const FIRST: Self = Self(0);

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    pub(crate) fn end_bits(self) -> u64 {
        self.0 >> TURN_BITS
    }

    /// Returns whether the turn has no end.
    pub(crate) fn is_open(self) -> bool {
        self.end_bits() == 0
    }

    /// Returns whether the end has come. Asked only of a turn that has one.
    pub(crate) fn is_over(self, time: u64) -> bool {
        // Half of the circle of times lies before the end, half behind it.
        (time.wrapping_sub(self.end_bits()) & TIME) < (1 << (TIME_BITS - 1))
    }

    /// Returns the nanoseconds until the end. Asked only of a turn that has one.
    pub(crate) fn remaining_ns(self, time: u64) -> u64 {
        if self.is_over(time) { 0 } else { (self.end_bits().wrapping_sub(time) & TIME) * UNIT_NS }
    }

    /// Returns for how many nanoseconds the turn has lasted, if its end was `quantum` after its
    /// beginning.
    pub(crate) fn elapsed_ns(self, time: u64, quantum: u64) -> u64 {
        let over = if self.is_over(time) {
            (time.wrapping_sub(self.end_bits()) & TIME) * UNIT_NS
        } else {
            0
        };
        (quantum + over).saturating_sub(self.remaining_ns(time))
    }

    /// Returns in how many nanoseconds `spent` of its `quantum` will be over; 0 if it is.
    pub(crate) fn ns_until_elapsed(self, time: u64, quantum: u64, spent: u64) -> u64 {
        self.remaining_ns(time).saturating_sub(quantum.saturating_sub(spent))
    }

    /// Returns the next turn, of `slot`, which ends at `end` or is open (0).
    pub(crate) fn next(self, slot: usize, end: u64) -> Self {
        let epoch = (self.0 >> SLOT_BITS).wrapping_add(1) & ((1 << EPOCH_BITS) - 1);
        Self((end & TIME) << TURN_BITS | epoch << SLOT_BITS | slot as u64)
    }

    /// Returns the same turn with another end.
    pub(crate) fn with_end(self, end: u64) -> Self {
        Self((end & TIME) << TURN_BITS | (self.0 & ((1 << TURN_BITS) - 1)))
    }

    /// Returns the time that is `nanos` after `time`; never 0.
    pub(crate) fn after(time: u64, nanos: u64) -> u64 {
        (time.wrapping_add(nanos.div_ceil(UNIT_NS)) & TIME).max(1)
    }

    /// Returns whether the two are one turn, maybe with different ends.
    pub fn is_same_turn(self, other: Self) -> bool {
        (self.0 ^ other.0) & ((1 << TURN_BITS) - 1) == 0
    }
}
