//! The errors of gangs: of building an executor, of spawning a gang, while it runs, and of joining
//! it.

use std::any::Any;
use std::fmt;
use std::io;

use crate::matrix::{AllocationError, MOST_PROCESSORS};

/// The reason why an executor could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is none with so many virtual processors.
    #[error(
        "an executor of {asked} virtual processors: it can have 1 to {MOST_PROCESSORS}, and one for each CPU is best"
    )]
    Processors {
        /// The number asked for.
        asked: usize,
    },
    /// There is none with so many slots.
    #[error("an executor of {asked} slots: it can have 1 to {most}")]
    Slots {
        /// The number asked for.
        asked: usize,
        /// The most that there can be.
        most: usize,
    },
    /// The quantum is too short to do anything in it, or too long for the scheduler's times.
    #[error("a quantum of {asked:?}: take one from 50 us to 1 h")]
    Quantum {
        /// The quantum asked for.
        asked: std::time::Duration,
    },
    /// The system refused to start the timer's thread.
    #[error(
        "the system refused to start the timer's thread: {source}; raise its limit on threads (`ulimit -u`, the control group's pids.max)"
    )]
    NoThread {
        /// The error of the system.
        source: io::Error,
    },
}

/// The reason why a gang could not be spawned. The executor is as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The gang has no members.
    #[error("a gang of 0 members: ask for at least 1")]
    Empty,
    /// There are fewer virtual processors: its members could never run at the same time.
    #[error(
        "a gang of {asked} members, but the executor has {processors} virtual processors: ask for at most {processors}, or build it with `processors({asked})`"
    )]
    TooLarge {
        /// The number asked for.
        asked: usize,
        /// The number of virtual processors.
        processors: usize,
    },
    /// Every slot has too few free processors.
    #[error(
        "none of the {slots} slots has {asked} free processors: join a gang first, or build the executor with more `slots`"
    )]
    NoSlot {
        /// The number of members asked for.
        asked: usize,
        /// The number of slots.
        slots: usize,
    },
    /// The system refused to start a thread. The threads that had been started for the gang have
    /// ended again.
    #[error(
        "the system refused to start thread {started} of {asked} for a gang: {source}; raise its limit on threads (`ulimit -u`, the control group's pids.max), or ask for another `stack_size`"
    )]
    NoThread {
        /// The number of members that had a thread.
        started: usize,
        /// The number asked for.
        asked: usize,
        /// The error of the system.
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

/// The reason why a gang has ended before its members have. Their calls return it; propagate it
/// with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// A handle has cancelled it.
    #[error("the gang was cancelled")]
    Cancelled,
    /// A member panicked.
    #[error("member {member} of the gang panicked")]
    Panicked {
        /// The member.
        member: usize,
    },
    /// A member has returned, and will not arrive where the others wait for it.
    #[error("member {member} of the gang has left")]
    Left {
        /// The member.
        member: usize,
    },
}

/// The reason why a gang did not end as its members meant to.
///
/// It is `Send` and not `Sync`, as the payload of a panic is. Where an error must be both, use its
/// text (`to_string`).
#[non_exhaustive]
pub enum GangError {
    /// A member panicked.
    Panicked {
        /// The member.
        member: usize,
        /// The payload of its panic.
        payload: Box<dyn Any + Send>,
    },
    /// It was cancelled, and a member has ended for that.
    Cancelled,
    /// A member returned an error, or returned while others waited for it.
    Left {
        /// The first such member.
        member: usize,
    },
}

impl GangError {
    /// Resumes the panic of the member, if it was one.
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
