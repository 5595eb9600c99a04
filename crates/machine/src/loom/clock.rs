//! Time in a model: it stands still.
//!
//! If a deadline is neither past nor never, then it passes by [`choice`](crate::choice), when a
//! wait checks it.

use crate::clock::{Instant, Source};

pub(crate) fn now() -> u64 {
    1
}

pub(crate) fn to_nanos(ticks: u64) -> u64 {
    ticks
}

pub(crate) fn from_nanos(nanos: u64) -> u64 {
    nanos
}

pub(crate) fn monotonic() -> u64 {
    0
}

/// Returns 0 for a moment that is past. Models distinguish only past moments from those to come.
pub(crate) fn monotonic_at(instant: Instant) -> u64 {
    instant.checked_duration_since(Instant::now()).map_or(0, |ahead| ahead.as_nanos() as u64)
}

pub(crate) fn instant() -> Instant {
    Instant::now()
}

pub(crate) fn pause_ns() -> f64 {
    1.0
}

pub(crate) fn source() -> Source {
    Source::Modelled
}
