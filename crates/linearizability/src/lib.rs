#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod check;
mod gate;
mod history;
mod random;
mod recorder;
pub mod specification;
mod timeline;
mod trial;
mod violation;

pub use check::check;
pub use history::{Call, Event, History, Malformed};
pub use random::Random;
pub use recorder::{Log, Recorder};
pub use specification::{Sequential, Specification};
pub use trial::{Tally, Trial};
pub use violation::Violation;

/// A history of what `S` specifies.
pub type HistoryOf<S> = History<<S as Specification>::Operation, <S as Specification>::Outcome>;
