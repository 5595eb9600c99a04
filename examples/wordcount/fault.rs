//! Why a file or a directory was left out.

use std::io;

/// An obstacle on the way to a path. The other paths are counted all the same.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The system does not read it.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The byte at this position is 0.
    #[error("not text, left out: byte {0} is 0")]
    Zero(u64),
    /// It is no UTF-8 from this position on.
    #[error("not text, left out: no UTF-8 from byte {0} on")]
    Encoding(u64),
    /// There is no space for [`LONGEST`] bytes from this position on.
    #[error("not text, left out: no space within {LONGEST} bytes from byte {0} on")]
    Spaceless(u64),
}

/// More bytes than this without a space between them are no text.
pub const LONGEST: usize = 1 << 16;

impl Fault {
    /// Returns whether the path is as it should be, only no text.
    pub fn is_harmless(&self) -> bool {
        !matches!(self, Self::Unreadable(_))
    }

    /// The byte of the file that it is about; that it cannot be read comes before all bytes.
    pub fn place(&self) -> Option<u64> {
        match self {
            Self::Unreadable(_) => None,
            Self::Zero(byte) | Self::Encoding(byte) | Self::Spaceless(byte) => Some(*byte),
        }
    }
}
