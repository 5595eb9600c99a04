//! The promise of a structure to the other threads when one of them stops.
//!
//! Every structure of this crate states it as a constant of its trait (`PROGRESS`), so that a
//! program can demand it where it chooses its structure. The promise is tested: one thread is
//! stopped after each step of each operation in turn, and the other threads must finish.

/// The effect on the other threads when a thread stops in the middle of an operation.
///
/// The order is by strength: `Progress::LockFree > Progress::Blocking`.
///
/// ```
/// use stanchion_lockfree::{ConcurrentStack, Progress};
///
/// /// For use where the thread may be stopped at any time: a wrong choice does not compile.
/// fn log_to<S: ConcurrentStack>(_stack: &S) {
///     const { assert!(S::PROGRESS.is_non_blocking()) }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// They may have to wait for it: it holds a lock, or has claimed a slot and not filled it yet.
    Blocking,
    /// One of them finishes within a bounded number of steps. A given one may be unlucky for ever.
    /// Michael and Scott's word for it is *non-blocking*.
    LockFree,
    /// Each of them finishes within a bounded number of steps.
    WaitFree,
}

impl Progress {
    /// Returns whether a stopped thread stops no other thread.
    #[must_use]
    pub const fn is_non_blocking(self) -> bool {
        matches!(self, Self::LockFree | Self::WaitFree)
    }
}
