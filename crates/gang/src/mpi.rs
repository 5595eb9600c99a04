//! A gang of the ranks of an MPI job: each member is a process, maybe on another computer.
//!
//! The job is one gang. Its launcher (`mpirun`, Slurm) has given it its processors, so there are no
//! virtual processors and no slots here. A cluster's scheduler can take turns between whole jobs,
//! which is gang scheduling too. The same closure runs: the operations of [`Member`] map to
//! collectives.
//!
//! ```text
//! cargo build --release --features mpi
//! mpirun -n 4 target/release/program
//! ```
//!
//! To build, this needs an MPI library, its compiler wrapper `mpicc`, and libclang; to run,
//! `mpirun`. Started without it, the gang has one member.
//!
//! Why each operation begins with a collective in which all ranks tell what they are about to do:
//! MPI has no way to say that one rank will not come. Here a rank that has returned or panicked
//! goes on with that collective, and says so, until all have: no rank waits for ever. It costs one
//! more small collective for values above 64 bytes and for lists. Smaller values travel with it.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;

use crate::error::{Ended, GangError};
use crate::member::{Member, Ranks};

/// The reason why a job did not end as its ranks meant to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// MPI was initialized before in this process, maybe by an earlier call. That can be done once.
    #[error(
        "MPI is initialized already in this process: it can be done once, so call `run` once, and nothing else that does it"
    )]
    Initialized,
    /// The gang has ended early.
    #[error(transparent)]
    Gang(#[from] GangError),
}

/// Runs `body` as a member of the gang of all ranks, and returns its result. To be called once in a
/// process, by all ranks.
///
/// If `body` panics or returns early in one rank, the gang ends for the others: their calls return
/// [`Ended`]. A rank that returns waits until all do, so that MPI is finalized once all are done.
///
/// # Errors
///
/// [`MpiError::Gang`] if this rank's `body` panicked, or returned an error.
///
/// # Example
///
/// ```no_run
/// let sum = stanchion_gang::mpi::run(|member| member.all_reduce(member.index(), |a, b| a + b))?;
/// println!("{sum}");
/// # Ok::<(), stanchion_gang::mpi::MpiError>(())
/// ```
pub fn run<R>(body: impl FnOnce(&mut Member) -> Result<R, Ended>) -> Result<R, MpiError> {
    let universe = mpi::initialize().ok_or(MpiError::Initialized)?;
    let ranks = Rc::new(Ranks::new(universe));
    let outcome =
        panic::catch_unwind(AssertUnwindSafe(|| body(&mut Member::of_ranks(Rc::clone(&ranks)))));
    let member = ranks.index();
    let (ended, result) = match outcome {
        Ok(Ok(result)) => (Ended::Left { member }, Ok(result)),
        Ok(Err(ended)) => (Ended::Left { member }, Err(gang_error(ended, &ranks))),
        Err(payload) => (Ended::Panicked { member }, Err(GangError::Panicked { member, payload })),
    };
    ranks.leave(ended);
    Ok(result?)
}

/// Returns the error of a rank that has ended early. If another rank has panicked, the error says
/// that it has gone.
fn gang_error(ended: Ended, ranks: &Ranks) -> GangError {
    match ended {
        Ended::Cancelled => GangError::Cancelled,
        Ended::Panicked { member } | Ended::Left { member } => {
            debug_assert!(member < ranks.len());
            GangError::Left { member }
        }
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks").field("index", &self.index()).field("len", &self.len()).finish()
    }
}
