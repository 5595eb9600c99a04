//! Virtual time: one tick is one nanosecond of the code's clock, and the same on every processor.
//!
//! Deadlines are given as the standard library's instants, so virtual moments need such instants
//! too: [`ORIGIN`] plus the virtual time. The origin lies a century ahead. So an instant that was
//! read from the real clock is recognized, because it comes before the origin.

use core::time::Duration;
use std::sync::OnceLock;

use crate::clock::{Instant, Source};
use stanchion_simulator::inside;

/// The instant that stands for the virtual time 0, in all runs of this process.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

fn origin() -> Instant {
    *ORIGIN.get_or_init(|| {
        let now = Instant::now();
        now.checked_add(CENTURY).unwrap_or(now)
    })
}

pub(crate) fn now() -> u64 {
    inside::now()
}

pub(crate) fn to_nanos(ticks: u64) -> u64 {
    ticks
}

pub(crate) fn from_nanos(nanos: u64) -> u64 {
    nanos
}

pub(crate) fn monotonic() -> u64 {
    inside::now()
}

/// Returns the virtual moment that `instant` stands for.
pub(crate) fn monotonic_at(instant: Instant) -> u64 {
    match instant.checked_duration_since(origin()) {
        Some(later) => u64::try_from(later.as_nanos()).unwrap_or(u64::MAX),
        None => inside::forbidden("std::time::Instant::now"),
    }
}

pub(crate) fn instant() -> Instant {
    let now = inside::now();
    origin().checked_add(Duration::from_nanos(now)).unwrap_or_else(origin)
}

pub(crate) fn pause_ns() -> f64 {
    super::wait::pause_nanos() as f64
}

pub(crate) fn source() -> Source {
    Source::Virtual
}
