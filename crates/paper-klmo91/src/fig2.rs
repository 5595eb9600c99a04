//! Figure 2: the waits for locks of the threads of an editor, Ivy. Ivy was a large interactive
//! program, which always had a request to answer. Recorded here are a server of Debian's, memcached
//! with four threads, kept busy by eight clients; and a [stand-in](super::stand_in) of ours.
//!
//! Rule of the verdict: *only a small percentage of waits led to blocking* (section 3) is taken to
//! mean that the share of waits longer than C is at most that of the paper's longer session, 8.4 %
//! (table 2). Only the waits of memcached decide: *not judged* below 100 of them, or where it is
//! missing; *not run* where neither could be recorded, as on a system that has no shim.

use super::recorded::{self, Source};
use super::server::SERVER;
use super::{paper, show};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::outcome::{Outcome, Verdict};
use stanchion_study::units::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "klmo91/fig2",
    paper: Paper::Klmo91,
    title: "Lock waits of an editor: here, of a server",
    claim: "Only a small percentage of the waits led to blocking.",
    bodies: Bodies::real(run, "it records programs that run on a real machine only"),
};

fn run(context: &Context) -> Result<Outcome, Stop> {
    context.plan(2);
    let ours = recorded::of(Source::OwnServer, context)?;
    show::foreign_and_ours(&recorded::of(Source::Server, context)?, &ours, verdict)
}

/// Judges the share of waits that were longer than C.
fn verdict(long: f64) -> Verdict {
    let most = paper::offline_of(SERVER.beside).map_or(0.0, |row| row.blocks);
    let figures = format!(
        "{} of the waits were longer than C, {} in the paper",
        percent(long),
        percent(most)
    );
    Verdict::when(long <= most, figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_share_is_the_most() {
        assert_eq!(verdict(0.084).name(), "holds");
        assert_eq!(verdict(0.085).name(), "differs");
    }
}
