//! Bounds on what a check may spend.

use core::fmt;

/// The most that one check may spend before it answers *undecided*.
///
/// Both bounds are counted, not measured, so the answer to a history is the same on every computer.
///
/// - Steps: one for each call that the search tries, and one for each 64 bytes of the state after
///   it. The default is 10 million. They take some seconds, and ten times as long without
///   optimization.
/// - Memory: the states that the search remembers, by the bytes that they feed to their hash. The
///   default is 256 MiB.
///
/// Histories of queues, stacks and priority queues with distinct values stay far below either.
///
/// ```
/// use stanchion_linearizability::specification::{Count, Counter};
/// use stanchion_linearizability::{Budget, CheckError, Event::{Begin, End}, History, check_within};
///
/// // Twelve threads add at once, and the search tries more calls than this budget pays for.
/// let begins = (0..12).map(|thread| Begin(thread, Count::Add(1)));
/// let ends = (0..12).map(|thread| End(thread, None));
/// let history = History::from_events(begins.chain(ends))?;
/// let budget = Budget::new().steps(10);
/// let undecided = check_within(budget, &Counter::new(0), &history);
/// assert!(matches!(undecided, Err(CheckError::Undecided(_))));
/// assert!(check_within(Budget::new(), &Counter::new(0), &history).is_ok());
/// # Ok::<(), stanchion_linearizability::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps of the search.
    steps: u64,
    /// Bytes of remembered states.
    memory: usize,
}

impl Budget {
    /// Returns a budget of 10 million steps and 256 MiB.
    #[must_use]
    pub const fn new() -> Self {
        Self { steps: 10_000_000, memory: 256 << 20 }
    }

    /// Allows this number of steps.
    #[must_use]
    pub const fn steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// Allows this number of bytes.
    #[must_use]
    pub const fn memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

/// The check spent its [`Budget`] before it found an order of the calls, or that there is none.
///
/// A test treats it as a failure: it says nothing about the history. What helps, in this order:
/// values of which each is pushed once, shorter histories, fewer threads, a larger budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "undecided: {calls} calls took more than {budget}; push each value once only, make histories shorter, or allow more with a `Budget`"
)]
pub struct Undecided {
    /// The calls of the history.
    pub calls: usize,
    /// The budget that it had.
    pub budget: Budget,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps or {} KiB", self.steps, self.memory >> 10)
    }
}

/// The rest of a budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purse {
    /// The steps that may still be taken.
    steps: u64,
    /// The bytes that may still be used.
    memory: usize,
}

/// There was not enough left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent;

impl Purse {
    pub(crate) const fn new(budget: Budget) -> Self {
        Self { steps: budget.steps, memory: budget.memory }
    }

    /// Pays for work.
    pub(crate) fn steps(&mut self, steps: usize) -> Result<(), Spent> {
        let left = self.steps.checked_sub(steps as u64);
        self.steps = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Spent)
    }

    /// Pays for memory.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<(), Spent> {
        self.memory = self.memory.checked_sub(bytes).ok_or(Spent)?;
        Ok(())
    }

    /// Gives back memory that was paid for.
    pub(crate) fn returned(&mut self, bytes: usize) {
        self.memory += bytes;
    }

    /// Gives back all memory that was paid for since `before`.
    pub(crate) fn restore_memory(&mut self, before: Self) {
        self.memory = before.memory;
    }
}
