//! What can go wrong with gangs: when an executor is built, when a gang is spawned, while it runs, and when it is joined.

use std::any::Any;
use std::fmt;
use std::io;

use crate::matrix::{AllocationError, MOST_PROCESSORS};

/// An executor could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is none with so many seats.
    #[error(
        "an executor of {asked} virtual processors: it can have 1 to {MOST_PROCESSORS}, and one for each CPU is best"
    )]
    Processors {
        /// How many were asked for.
        asked: usize,
    },
    /// There is none with so many slots.
    #[error("an executor of {asked} slots: it can have 1 to {most}")]
    Slots {
        /// How many were asked for.
        asked: usize,
        /// How many there can be.
        most: usize,
    },
    /// A quantum that is too short to do anything in it, or too long for the gate's clock.
    #[error("a quantum of {asked:?}: take one from 50 us to 1 h")]
    Quantum {
        /// The quantum asked for.
        asked: std::time::Duration,
    },
    /// The system refused to start the clock's thread.
    #[error(
        "the system refused to start the clock's thread: {source}; raise its limit on threads (`ulimit -u`, the control group's pids.max)"
    )]
    NoThread {
        /// What the system said.
        source: io::Error,
    },
}

/// A gang could not be spawned. The executor is as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// A gang of nobody.
    #[error("a gang of 0 members: ask for at least 1")]
    Empty,
    /// Its members could never run at the same time.
    #[error(
        "a gang of {asked} members, but the executor has {processors} virtual processors: ask for at most {processors}, or build it with `processors({asked})`"
    )]
    TooLarge {
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        processors: usize,
    },
    /// Every slot has too few free seats.
    #[error(
        "none of the {slots} slots has {asked} free processors: join a gang first, or build the executor with more `slots`"
    )]
    NoSlot {
        /// How many members were asked for.
        asked: usize,
        /// How many slots there are.
        slots: usize,
    },
    /// The system refused to start a thread. Those that had been started for the gang have ended again.
    #[error(
        "the system refused to start thread {started} of {asked} for a gang: {source}; raise its limit on threads (`ulimit -u`, the control group's pids.max), or ask for another `stack_size`"
    )]
    NoThread {
        /// How many members had a thread.
        started: usize,
        /// How many were asked for.
        asked: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The executor is shut down.
    #[error("the executor is shut down: spawn before `shutdown`, or build another")]
    Closed,
}

impl From<AllocationError> for SpawnError {
    fn from(none: AllocationError) -> Self {
        match none {
            AllocationError::Empty => Self::Empty,
            AllocationError::TooLarge { asked, processors } => Self::TooLarge { asked, processors },
            AllocationError::NoSlot { asked, slots } => Self::NoSlot { asked, slots },
        }
    }
}

/// The gang has ended before its members have: what their calls return, to be handed on with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// Somebody has cancelled it.
    #[error("the gang was cancelled")]
    Cancelled,
    /// A member panicked.
    #[error("member {member} of the gang panicked")]
    Panicked {
        /// Which.
        member: usize,
    },
    /// A member has returned, and will not come to where the others wait for it.
    #[error("member {member} of the gang has left")]
    Left {
        /// Which.
        member: usize,
    },
}

/// A gang did not end as its members meant to.
///
/// `Send` and not `Sync`, as what a panic carries: where an error must be both, hand on what it says (`to_string`).
#[non_exhaustive]
pub enum GangError {
    /// A member panicked.
    Panicked {
        /// Which member.
        member: usize,
        /// What it panicked with.
        payload: Box<dyn Any + Send>,
    },
    /// It was cancelled, and a member has heeded it.
    Cancelled,
    /// A member returned an error, or returned while others waited for it.
    Left {
        /// Which member was the first.
        member: usize,
    },
}

impl GangError {
    /// Goes on with the panic of the member, if that is what it was.
    ///
    /// # Panics
    ///
    /// With the member's payload.
    #[must_use]
    pub fn resume_panic(self) -> Self {
        match self {
            Self::Panicked { payload, .. } => std::panic::resume_unwind(payload),
            other => other,
        }
    }
}

impl fmt::Display for GangError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked { member, payload } => {
                write!(f, "member {member} of the gang panicked")?;
                let said = payload.downcast_ref::<&str>().copied();
                match said.or_else(|| payload.downcast_ref::<String>().map(String::as_str)) {
                    Some(said) => write!(f, ": {said}"),
                    None => Ok(()),
                }
            }
            Self::Cancelled => f.write_str("the gang was cancelled"),
            Self::Left { member } => {
                write!(f, "member {member} of the gang left it before the others were done")
            }
        }
    }
}

impl fmt::Debug for GangError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GangError({self})")
    }
}

impl std::error::Error for GangError {}
