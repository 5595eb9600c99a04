//! A member of a gang: a thread of an executor, or a rank of an MPI job.
//!
//! | file | holds |
//! | --- | --- |
//! | `interface.rs` | the member as its closure sees it |
//! | `thread_member.rs` | a member that is a thread |
//! | `ranks/` | members that are the ranks of an MPI job |

mod interface;
#[cfg(feature = "mpi")]
mod ranks;
mod thread_member;

pub use interface::{Exchanged, Member};
#[cfg(feature = "mpi")]
pub(crate) use ranks::Ranks;
