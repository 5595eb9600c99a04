//! The errors of sending and receiving. Errors of sending give the message back.

use core::fmt;

use thiserror::Error;

/// No receiver is left.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("sending on a channel without receivers")]
pub struct SendError<T>(pub T);

/// Why [`Sender::try_send`](super::Sender::try_send) failed.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum TrySendError<T> {
    /// There is no room, or with capacity 0 no receive that waits.
    #[error("sending on a channel that is full")]
    Full(T),
    /// No receiver is left.
    #[error("sending on a channel without receivers")]
    Disconnected(T),
}

/// Why a send with a deadline failed.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum SendTimeoutError<T> {
    /// There was no room in time.
    #[error("a channel was full for too long")]
    Timeout(T),
    /// No receiver is left.
    #[error("sending on a channel without receivers")]
    Disconnected(T),
}

/// There is no message, and no sender is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("receiving from a channel that is empty and without senders")]
pub struct RecvError;

/// Why [`Receiver::try_recv`](super::Receiver::try_recv) failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TryRecvError {
    /// There is no message.
    #[error("receiving from a channel that is empty")]
    Empty,
    /// There is none, and no sender is left.
    #[error("receiving from a channel that is empty and without senders")]
    Disconnected,
}

/// Why a receive with a deadline failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecvTimeoutError {
    /// No message came in time.
    #[error("a channel was empty for too long")]
    Timeout,
    /// There is none, and no sender is left.
    #[error("receiving from a channel that is empty and without senders")]
    Disconnected,
}

// The message need not be `Debug`, so that every error can be unwrapped.

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Disconnected(_) => "Disconnected(..)",
        })
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Disconnected(_) => "Disconnected(..)",
        })
    }
}
