//! Regsim: a parallel register-level simulator for synchronous digital logic, on real circuits.
//!
//! One of the four programs that Karlin, Li, Manasse and Owicki used to compare strategies of
//! spinning, by their lock-waiting times. It is built here from the paper's description. It reads
//! ISCAS'89 netlists and takes its lock as a type parameter. So it serves as a real load with many
//! short critical sections: [`run`].
//!
//! | module | content |
//! | --- | --- |
//! | [`sequential`] | the reference, without threads or locks |
//! | [`barrier`], [`stations`], [`wiring`] | parts of the parallel simulator, for tests |
//! | [`circuits`] | netlists that come with the crate |
//!
//! Source: A. Karlin, K. Li, M. Manasse, S. Owicki, *Empirical studies of competitive spinning for
//! a shared-memory multiprocessor*, 1991, sections 3 and 4.

pub mod circuits;
mod error;
mod gate;
mod levels;
mod netlist;
mod parallel;
mod parse;
pub mod sequential;
pub mod stations;
mod stats;
mod stimulus;
pub mod wiring;

pub use crate::barrier;
pub use crate::crew::MAX_THREADS;
pub use crate::waits::Waits;
pub use error::{ParseError, Reason, Shown};
pub use gate::{Gate, Kind};
pub use netlist::{Net, Netlist};
pub use parallel::{Options, Run, Share, run, run_with};
pub use parse::{MAX_LINE, MAX_NETS};
pub use stats::WaitStatistics;
pub use stimulus::{contribution, stimulus};
