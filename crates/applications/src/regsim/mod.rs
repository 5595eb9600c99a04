//! Regsim: a parallel register-level simulator for synchronous digital logic, on real circuits.
//!
//! One of the four programs by whose lock-waiting times Karlin, Li, Manasse and Owicki compared
//! strategies of spinning. Built here from the paper's description, it reads ISCAS'89 netlists and
//! takes its lock as a type parameter, so it serves as a load with many short critical sections
//! that is not made up: [`run`].
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`sequential`] | the reference, without threads or locks |
//! | [`barrier`], [`stations`], [`wiring`] | the parts of the parallel simulator, open to models and tests |
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
