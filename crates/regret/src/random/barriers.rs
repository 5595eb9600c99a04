//! Random cells of barriers: members that compute, and cross.

use serde_json::json;
use stanchion_contests::gangs::{Circumstances, entrants};
use stanchion_formulas::Random;
use stanchion_study::units::{count, nanos};

use super::draw::{chance, uniform, zero_or_log_uniform};
use super::load::{MOST_THREADS, company, surroundings};
use super::{Drawn, Entrant, Family, Limits, Stage};
use crate::contestants::Role;
use crate::race::Figures;
use crate::waits::Waits;

/// Barriers.
pub(super) const FAMILY: Family = Family {
    name: "barriers",
    operations: "crossings",
    limits: Limits { mean: Some(1.05), p90: None, worst: Some(1.25), processor_time: None },
    waits_of: Some("std"),
    ours_enter: false,
    entrants: contestants,
    draw,
};

/// The least and the most nanoseconds of work between two crossings, if there is any.
const WORK: (f64, f64) = (10.0, 1_000_000.0);

fn contestants() -> Vec<Entrant> {
    let all = entrants().into_iter().enumerate();
    let contestant = |(index, one): (usize, stanchion_contests::gangs::Entrant)| Entrant {
        name: one.name,
        role: match (index, one.is_peer) {
            (0, _) => Role::Default,
            (_, true) => Role::Peer,
            (_, false) => Role::Policy,
        },
        sleeps: one.sleeps,
    };
    all.map(contestant).collect()
}

/// Draws circumstances, and the number of other processes that compute.
fn circumstances(random: &mut Random, processors: usize) -> (Circumstances, usize) {
    // One member crosses alone.
    let threads = uniform(random, 2, MOST_THREADS * processors);
    let grain = zero_or_log_uniform(random, WORK.0, WORK.1).round() as u64;
    let company = company(random);
    let (pinned, skewed) = (chance(random, 0.5), chance(random, 0.5));
    (Circumstances { threads, grain, skewed, hogs: 0, pinned }, company)
}

fn draw(random: &mut Random, processors: usize) -> Drawn {
    let (of, hogs) = circumstances(random, processors);
    let work = nanos(of.grain as f64);
    let mut words = vec![
        count(of.threads, "thread"),
        match of.skewed && of.grain > 0 {
            true => format!("up to twice {work} of work"),
            false => format!("{work} of work"),
        },
    ];
    words.extend(surroundings(hogs, of.pinned));
    let runs: Vec<_> = entrants().into_iter().map(|one| one.run).collect();
    Drawn {
        words: words.join(", "),
        data: json!({
            "threads": of.threads,
            "work_ns": of.grain,
            "skewed": of.skewed,
            "hogs": hogs,
            "pinned": of.pinned,
        }),
        hogs,
        race: Box::new(move |entrant, stage: &Stage<'_>| {
            let crossing = runs[entrant](of, stage.window + stage.timed);
            let mut waits = Waits::default();
            crossing.waits.iter().for_each(|&wait| waits.note(wait as u64));
            let figures = Figures {
                throughput: 1e9 / crossing.nanos,
                cost: crossing.processor,
                // All members cross equally often.
                fairness: 1.0,
                ..Figures::default()
            };
            Some((figures.with_waits(&waits), waits))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::source;
    use super::super::draw::tests::{near, quantile};
    use super::*;

    #[test]
    fn circumstances_have_the_quantiles_of_their_distributions() {
        let all: Vec<(Circumstances, usize)> =
            (0..100_000).map(|index| circumstances(&mut source("barriers", 1, index), 2)).collect();
        let number = |is: &dyn Fn(&Circumstances) -> bool| {
            all.iter().filter(|(of, _)| is(of)).count() as f64
        };
        near(number(&|of| of.pinned), 50_000.0);
        near(number(&|of| of.skewed), 50_000.0);
        near(number(&|of| of.grain == 0), 10_000.0);
        near(number(&|of| of.threads == 2), 100_000.0 / 15.0);
        near(number(&|of| of.threads == 16), 100_000.0 / 15.0);
        let worked = all.iter().filter(|(of, _)| of.grain > 0);
        let mut grains: Vec<f64> = worked.map(|(of, _)| of.grain as f64).collect();
        for (share, expected) in [(0.25, 177.8), (0.5, 3_162.0), (0.75, 56_230.0)] {
            near(quantile(&mut grains, share), expected);
        }
    }

    #[test]
    fn the_default_is_the_first_and_the_peers_are_there() {
        let all = contestants();
        assert_eq!((all[0].name, all[0].role), ("CoResident", Role::Default));
        let peers = all.iter().filter(|one| one.role == Role::Peer);
        assert_eq!(peers.map(|one| one.name).collect::<Vec<_>>().len(), 4);
        assert!(all.iter().any(|one| Some(one.name) == FAMILY.waits_of));
    }
}
