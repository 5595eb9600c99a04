//! Figure 1: the waits for locks of the threads of an operating system, Taos. Taos is not available
//! here. Recorded instead are programs of the kind that kept it busy in figure 1 (c), parallel
//! builds: `make -j` compiles C, and the linker `ld.gold` links it with four threads; and a
//! [stand-in](super::stand_in) of ours, which needs neither.
//!
//! Rule of the verdict: *a large percentage of the waits require only a few spins. Another large
//! percentage require blocking* (section 3) is taken to mean that at least a quarter of the waits
//! were no longer than C and at least a quarter longer. Only the waits of `make -j` decide: *not
//! judged* below 100 of them, or where a program is missing; *not run* where neither could be
//! recorded, as on a system that has no shim.

use super::recorded::{self, Source};
use super::show;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::outcome::{Outcome, Verdict};
use stanchion_study::units::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "klmo91/fig1",
    paper: Paper::Klmo91,
    title: "Lock waits of an operating system: here, of a parallel build",
    claim: "A large percentage of the waits require only a few spins, another large percentage \
            require blocking.",
    bodies: Bodies::real(run, "it records programs that run on a real machine only"),
};

fn run(context: &Context) -> Result<Outcome, Stop> {
    context.plan(2);
    let ours = recorded::of(Source::OwnBuild, context)?;
    show::foreign_and_ours(&recorded::of(Source::Build, context)?, &ours, verdict)
}

/// Judges the share of waits that were longer than C.
fn verdict(long: f64) -> Verdict {
    let figures = format!(
        "{} of the waits were no longer than C, {} were longer",
        percent(1.0 - long),
        percent(long)
    );
    Verdict::when((0.25..=0.75).contains(&long), figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_waits_must_be_many() {
        for (long, name) in [(0.2, "differs"), (0.25, "holds"), (0.75, "holds"), (0.8, "differs")] {
            assert_eq!(verdict(long).name(), name);
        }
    }
}
