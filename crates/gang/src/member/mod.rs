//! A member of a gang: a thread of an executor, or a rank of an MPI job.
//!
//! | file | holds |
//! | --- | --- |
//! | `interface.rs` | `Member`: the member as its closure sees it |
//! | `thread_member.rs` | `ThreadMember`: a member that is a thread of an executor |
//! | `barrier_wait.rs` | `BarrierWait`: the wait of such a member at its gang's barrier |
//! | `mpi/` | `Ranks`: the members that are ranks of an MPI job |
//! | `exchanged.rs` | `Exchanged`: the result of an exchange with the neighbours |
//!
//! Imports go downward in this table.

mod barrier_wait;
mod exchanged;
mod interface;
#[cfg(feature = "mpi")]
mod mpi;
mod thread_member;

pub use exchanged::Exchanged;
pub use interface::Member;
#[cfg(feature = "mpi")]
pub(crate) use mpi::Ranks;
