//! Members that are the ranks of an MPI job.
//!
//! | file | holds |
//! | --- | --- |
//! | `ranks.rs` | `Ranks`: the ranks of a job, and the collectives |
//! | `header.rs` | `Header`: what each rank sends to the others before each operation |

mod header;
mod ranks;

pub(crate) use ranks::Ranks;
