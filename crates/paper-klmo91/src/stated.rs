//! The figures that the paper states of its machine, which are what the simulated Firefly is told.

use stanchion_study::experiment::Paper;
use stanchion_study::stated::{Stated, Unit};

/// Returns the figures that the paper states.
pub fn stated() -> Vec<Stated> {
    vec![
        Stated::input(
            (Paper::Klmo91, "section 4"),
            "C, the context switch",
            (Unit::Nanos, 200_000.0),
        ),
        Stated::not_comparable(
            (Paper::Klmo91, "tables 1 to 4"),
            "seconds of programs",
            "their inputs and the programs that ran beside them are not known",
        ),
    ]
}
