//! The figures that the paper states of its machine, which are what the simulated Makbilan is told.

use stanchion_study::experiment::Paper;
use stanchion_study::stated::{Stated, Unit};

/// Returns the figures that the paper states.
pub fn stated() -> Vec<Stated> {
    vec![
        Stated::input((Paper::Fr92, "section 3.4"), "context switch", (Unit::Nanos, 200_000.0)),
        Stated::input((Paper::Fr92, "section 3.4"), "blocking", (Unit::Nanos, 300_000.0)),
        Stated::input((Paper::Fr92, "table 1"), "spawning", (Unit::Nanos, 1_600_000.0)),
        Stated::not_comparable(
            (Paper::Fr92, "table 1"),
            "spawning with gangs",
            "our executor keeps its threads from one gang to the next",
        ),
    ]
}
