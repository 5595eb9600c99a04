//! Whose turn it is, in one word.

/// The slot that is on, which turn it is, and when it is over. Time is kept in units of [`UNIT_NS`], 40 bits of it, which is 13 days.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn(u64);

/// 1.024 µs.
pub(crate) const UNIT_NS: u64 = 1 << 10;

const SLOT_BITS: u32 = 8;
const EPOCH_BITS: u32 = 16;
const TURN_BITS: u32 = SLOT_BITS + EPOCH_BITS;
const TIME_BITS: u32 = u64::BITS - TURN_BITS;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// The gate's time for so many nanoseconds after its beginning. Never 0, which stands for no time.
pub(crate) fn time(nanos: u64) -> u64 {
    ((nanos / UNIT_NS) & TIME).max(1)
}

impl Turn {
    pub const FIRST: Self = Self(0);

    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    pub fn end_bits(self) -> u64 {
        self.0 >> TURN_BITS
    }

    /// Whether it lasts until something happens.
    pub fn is_open(self) -> bool {
        self.end_bits() == 0
    }

    /// Whether its end has come. It has one.
    pub fn is_over(self, time: u64) -> bool {
        // Half of the circle lies before, half behind.
        (time.wrapping_sub(self.end_bits()) & TIME) < (1 << (TIME_BITS - 1))
    }

    /// Nanoseconds until its end. It has one.
    pub fn remaining_ns(self, time: u64) -> u64 {
        if self.is_over(time) { 0 } else { (self.end_bits().wrapping_sub(time) & TIME) * UNIT_NS }
    }

    /// For how many nanoseconds it has been on, if its end was `quantum` after its beginning.
    pub fn elapsed_ns(self, time: u64, quantum: u64) -> u64 {
        let over = if self.is_over(time) {
            (time.wrapping_sub(self.end_bits()) & TIME) * UNIT_NS
        } else {
            0
        };
        (quantum + over).saturating_sub(self.remaining_ns(time))
    }

    /// When it will have been on for `spent` of its `quantum`, in nanoseconds from now: 0 if it has.
    pub fn ns_until_elapsed(self, time: u64, quantum: u64, spent: u64) -> u64 {
        self.remaining_ns(time).saturating_sub(quantum.saturating_sub(spent))
    }

    /// The next turn, of that slot, which ends then, in the gate's time, or is open (0).
    pub fn next(self, slot: usize, end: u64) -> Self {
        let epoch = (self.0 >> SLOT_BITS).wrapping_add(1) & ((1 << EPOCH_BITS) - 1);
        Self((end & TIME) << TURN_BITS | epoch << SLOT_BITS | slot as u64)
    }

    /// The same turn with another end.
    pub fn with_end(self, end: u64) -> Self {
        Self((end & TIME) << TURN_BITS | (self.0 & ((1 << TURN_BITS) - 1)))
    }

    /// The moment so many nanoseconds after `time`; never 0.
    pub fn after(time: u64, nanos: u64) -> u64 {
        (time.wrapping_add(nanos.div_ceil(UNIT_NS)) & TIME).max(1)
    }

    /// Whether the same slot has been on all the time, apart from its end.
    pub fn is_same_turn(self, other: Self) -> bool {
        (self.0 ^ other.0) & ((1 << TURN_BITS) - 1) == 0
    }
}
