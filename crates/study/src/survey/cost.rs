//! The cost of a primitive, measured or not.

use std::hint::spin_loop;
use std::thread;

use serde::Serialize;

/// The cost of one primitive in nanoseconds, or the reason why it was not measured.
#[derive(Debug, Serialize)]
pub struct Cost {
    /// The primitive.
    pub what: String,
    /// Its cost.
    #[serde(flatten)]
    pub measured: Measured,
}

/// A measured cost, or the reason for its absence.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// The cost in nanoseconds.
    Nanos(f64),
    /// It was not measured, for this reason.
    NotMeasured(String),
}

impl Cost {
    /// Returns the cost of `what`.
    pub fn nanos(what: impl Into<String>, nanos: f64) -> Self {
        Self { what: what.into(), measured: Measured::Nanos(nanos) }
    }

    /// Returns the reason `why` in place of the cost of `what`.
    pub fn not_measured(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), measured: Measured::NotMeasured(why.into()) }
    }
}

/// Spins until `again` is false. If that takes long, it yields, because the awaited thread may need
/// this processor.
pub fn wait_while(again: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while again() {
        looks = looks.saturating_add(1);
        if looks < 10_000 { spin_loop() } else { thread::yield_now() }
    }
}
