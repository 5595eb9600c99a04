//! The one error that [`std::sync::mpsc`] does not have: its sends have no timeout.

use core::fmt;

/// Why a push or a send with a timeout failed. It gives the value back.
///
/// ```
/// use stanchion_lockfree::SendTimeoutError;
///
/// assert_eq!(SendTimeoutError::Timeout(5).into_inner(), 5);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendTimeoutError<T> {
    /// There was no room in time.
    #[error("timed out waiting for room in a full channel")]
    Timeout(T),
    /// The queue is closed, or no receiver is left.
    #[error("sending on a closed channel")]
    Disconnected(T),
}

impl<T> SendTimeoutError<T> {
    /// Returns the value that was not sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(value) | Self::Disconnected(value) => value,
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Timeout(_) => "Timeout",
            Self::Disconnected(_) => "Disconnected",
        };
        f.debug_tuple(name).finish_non_exhaustive()
    }
}
