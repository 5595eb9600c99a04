#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod budget;
mod check;
mod gate;
mod history;
mod minimize;
mod monitor;
mod random;
mod recorder;
mod search;
pub mod specification;
mod timeline;
mod trial;
mod violation;

pub use budget::{Budget, Undecided};
pub use check::{CheckError, check, check_within};
pub use history::{Call, Event, History, Malformed};
pub use random::Random;
pub use recorder::{Log, Recorder};
pub use specification::{Sequential, Specification};
pub use trial::{Tally, Trial};
pub use violation::Violation;

/// A history of what `S` specifies.
pub type HistoryOf<S> = History<<S as Specification>::Operation, <S as Specification>::Outcome>;
