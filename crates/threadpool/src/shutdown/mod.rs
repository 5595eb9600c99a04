//! The end of a pool: `termination.rs` detects that a closed pool is done, and `drain.rs` drops the
//! tasks that come later.

pub(crate) mod drain;
pub(crate) mod termination;

pub(crate) use self::drain::Drain;
pub(crate) use self::termination::Termination;
