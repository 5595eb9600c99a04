//! The time that a simulated machine computes: so many instructions at the pace of its processors.
//!
//! Why instructions and not nanoseconds: the amount of computation between a program's locks
//! belongs to the program, its speed to the machine. On the real machine computation takes its own
//! time, and declaring it costs nothing ([`stanchion_machine::work`]).
//!
//! The counts stand as constants beside the code that they are about. They are for code as the
//! compilers of the paper's time made it: checked subscripts and pointers, and no value kept in a
//! register from one statement to the next. They are estimates: the paper does not say how long its
//! programs computed.

/// Nanoseconds of an instruction on the Firefly of the paper: a CVAX does some three million in a
/// second.
pub const CVAX_INSTRUCTION_NS: u64 = 333;

/// Entering a critical section, leaving it, and a few statements inside, the lock's own accesses
/// apart.
///
/// Many for a few statements, but a section of Modula-2+ also sets up an exception handler, and in
/// it references are counted.
pub(crate) const SECTION: u64 = 40;

/// The pace of the machine's processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The time of an instruction, in nanoseconds.
    instruction_ns: u64,
}

impl Pace {
    pub(crate) fn new(instruction_ns: u64) -> Self {
        Self { instruction_ns }
    }

    /// Computes `instructions`: on a simulated machine only.
    #[inline]
    pub(crate) fn compute(self, instructions: u64) {
        stanchion_machine::work(self.instruction_ns.saturating_mul(instructions));
    }
}
