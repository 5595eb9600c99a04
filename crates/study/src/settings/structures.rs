//! Shared structures.

/// The way in which a structure keeps its threads apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a lock, or by another way in which threads wait for each other.
    Ordinary,
    /// By a lock that asks the scheduler not to preempt its holder.
    Safe,
    /// No thread waits for another.
    NonBlocking,
}
