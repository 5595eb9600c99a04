//! The modes of locks, and which of them block each other.

use std::fmt;

/// The mode in which a lock is taken.
///
/// A mutex is always [`Exclusive`](Mode::Exclusive).
///
/// ```
/// use stanchion_order::Mode;
///
/// assert!(Mode::Exclusive.conflicts(Mode::Shared));
/// assert!(!Mode::Shared.conflicts(Mode::Upgradable));
/// assert!(Mode::Upgradable.conflicts(Mode::Upgradable));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Held alone: a mutex, or a read-write lock that is written.
    Exclusive,
    /// Held beside other readers. A new reader may block while a writer waits.
    Shared,
    /// Held beside other readers. A new reader never blocks for a waiting writer.
    SharedRecursive,
    /// Held beside readers, by one thread, which may become the writer.
    Upgradable,
}

impl Mode {
    /// Returns true if the two modes cannot be held at the same time. Costs a comparison, and
    /// never panics.
    ///
    /// ```
    /// use stanchion_order::Mode;
    ///
    /// assert!(!Mode::Shared.conflicts(Mode::Shared));
    /// ```
    #[must_use]
    pub const fn conflicts(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Exclusive, _) | (_, Self::Exclusive) | (Self::Upgradable, Self::Upgradable)
        )
    }

    /// Returns how an acquisition in mode `wanted` is blocked by a thread that holds the lock in
    /// this mode.
    pub(crate) const fn blocks(self, wanted: Self) -> Blocks {
        if self.conflicts(wanted) {
            Blocks::Always
        } else if matches!(wanted, Self::SharedRecursive) {
            Blocks::Never
        } else {
            Blocks::BehindWriter
        }
    }

    /// Returns the mode of a number, if there is one.
    pub(crate) fn of_number(number: u64) -> Option<Self> {
        [Self::Exclusive, Self::Shared, Self::SharedRecursive, Self::Upgradable]
            .into_iter()
            .find(|mode| mode.number() == number)
    }

    /// Returns a small number that is different for each mode.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Exclusive => 1,
            Self::Shared => 2,
            Self::SharedRecursive => 3,
            Self::Upgradable => 4,
        }
    }

    /// Returns the mode with that number.
    pub(crate) const fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Exclusive,
            2 => Self::Shared,
            3 => Self::SharedRecursive,
            4 => Self::Upgradable,
            _ => return None,
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::SharedRecursive => "shared, recursive",
            Self::Upgradable => "upgradable",
        })
    }
}

/// The acquisition for which a thread is about to block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A lock, in a mode.
    New(Mode),
    /// The exclusive mode of a lock that the thread holds upgradable, and holds on meanwhile.
    Upgrade,
}

impl Wanted {
    /// Returns the mode that the thread waits for.
    pub(crate) const fn mode(self) -> Mode {
        match self {
            Self::New(mode) => mode,
            Self::Upgrade => Mode::Exclusive,
        }
    }

    /// Returns true if a thread that holds the lock in mode `held` may block itself thereby.
    pub(crate) fn is_blocked_by_own(self, held: Mode) -> bool {
        let is_upgraded = self == Self::Upgrade && held == Mode::Upgradable;
        !is_upgraded && held.blocks(self.mode()) != Blocks::Never
    }

    /// Returns a small number that is different for each acquisition.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::New(mode) => mode.number(),
            Self::Upgrade => 5,
        }
    }
}

/// The ways in which a holder blocks an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Until the holder releases the lock.
    Always,
    /// Only while a writer waits for the lock.
    BehindWriter,
    /// Not at all.
    Never,
}
