//! Shared structures.

/// How a structure keeps its threads apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a lock, or by waiting for one another in some other way.
    Ordinary,
    /// By a lock whose holder asks not to be preempted.
    Safe,
    /// Nobody waits for anybody.
    NonBlocking,
}
