//! Random cells of thread pools: batches of tasks.

use serde_json::json;
use stanchion_contests::pools::{Batch, entrants};
use stanchion_formulas::Random;
use stanchion_study::units::{count, nanos, percent};

use super::draw::{chance, log_uniform, uniform};
use super::load::{company, surroundings};
use super::{Drawn, Entrant, Family, Limits, Stage};
use crate::contestants::Role;
use crate::race::Figures;
use crate::waits::Waits;

/// Thread pools.
pub(super) const FAMILY: Family = Family {
    name: "pools",
    operations: "batches",
    limits: Limits { mean: None, p90: None, worst: Some(1.20), processor_time: None },
    waits_of: Some("rayon"),
    ours_enter: false,
    entrants: contestants,
    draw,
};

/// The strategy of a pool that a user gets without naming one.
const DEFAULT: &str = "work stealing";

/// The least and the most nanoseconds of a leaf.
const GRAIN: (f64, f64) = (100.0, 1_000_000.0);

/// The fewest and the most leaves of a batch.
const WIDTH: (f64, f64) = (2.0, 10_000.0);

/// The most nanoseconds of all leaves of a batch together. A wider batch has fewer leaves: a window
/// of a third of a second must hold several batches.
const MOST: f64 = 20_000_000.0;

/// The most levels of a batch.
const DEPTH: usize = 6;

/// The nanoseconds between two batches of an idle pool.
const PAUSE: u64 = 1_000_000;

/// The least and the most share of leaves that block, if any do.
const BLOCKING: (f64, f64) = (0.001, 0.1);

fn contestants() -> Vec<Entrant> {
    let contestant = |one: stanchion_contests::pools::Entrant| Entrant {
        name: one.name,
        role: match one.is_peer {
            true => Role::Peer,
            false if one.name == DEFAULT => Role::Default,
            false => Role::Policy,
        },
        sleeps: true,
    };
    entrants().into_iter().map(contestant).collect()
}

/// Draws a batch, and the number of other processes that compute.
fn batch(random: &mut Random, processors: usize) -> (Batch, usize) {
    let threads = uniform(random, 1, 2 * processors);
    let grain = log_uniform(random, GRAIN.0, GRAIN.1).round();
    let width = log_uniform(random, WIDTH.0, WIDTH.1).min(MOST / grain).max(WIDTH.0).round();
    let depth = uniform(random, 1, DEPTH);
    let inside = chance(random, 0.5);
    let pause = if chance(random, 0.5) { PAUSE } else { 0 };
    let share = log_uniform(random, BLOCKING.0, BLOCKING.1);
    let most = MOST / (width * stanchion_contests::pools::BLOCK.as_nanos() as f64);
    let blocking = if chance(random, 0.5) { share.min(most) } else { 0.0 };
    let hogs = company(random);
    let (grain, width) = (grain as u64, width as usize);
    (Batch { threads, width, depth, grain, inside, pause, blocking }, hogs)
}

fn draw(random: &mut Random, processors: usize) -> Drawn {
    let (of, hogs) = batch(random, processors);
    let mut words = vec![
        count(of.threads, "worker"),
        format!("{} of {}", count(of.width, "task"), nanos(of.grain as f64)),
        count(of.depth, "level"),
        if of.inside { "begun inside" } else { "begun outside" }.to_owned(),
        if of.pause > 0 { "idle between batches" } else { "busy" }.to_owned(),
    ];
    if of.blocking > 0.0 {
        words.push(format!("{} block", percent(of.blocking)));
    }
    words.extend(surroundings(hogs, false));
    let all = entrants();
    Drawn {
        words: words.join(", "),
        data: json!({
            "threads": of.threads,
            "width": of.width,
            "depth": of.depth,
            "grain_ns": of.grain,
            "inside": of.inside,
            "pause_ns": of.pause,
            "blocking": of.blocking,
            "hogs": hogs,
        }),
        hogs,
        race: Box::new(move |entrant, stage: &Stage<'_>| {
            let ran = all[entrant].run(of, stage.settle, stage.window + stage.timed);
            let mut waits = Waits::default();
            ran.times.iter().for_each(|&time| waits.note(time as u64));
            let figures = Figures {
                throughput: 1e9 / ran.nanos,
                cost: ran.processor,
                fairness: 1.0,
                ..Figures::default()
            };
            // A long batch starves no thread.
            Some((Figures { longest: 0.0, ..figures.with_waits(&waits) }, waits))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::source;
    use super::super::draw::tests::{near, quantile};
    use super::*;

    #[test]
    fn batches_have_the_quantiles_of_their_distributions() {
        let all: Vec<(Batch, usize)> =
            (0..100_000).map(|index| batch(&mut source("pools", 1, index), 2)).collect();
        let number =
            |is: &dyn Fn(&Batch) -> bool| all.iter().filter(|(of, _)| is(of)).count() as f64;
        near(number(&|of| of.inside), 50_000.0);
        near(number(&|of| of.pause > 0), 50_000.0);
        near(number(&|of| of.blocking > 0.0), 50_000.0);
        near(number(&|of| of.threads == 1), 25_000.0);
        near(number(&|of| of.depth == DEPTH), 100_000.0 / 6.0);
        let mut grains: Vec<f64> = all.iter().map(|(of, _)| of.grain as f64).collect();
        for (share, expected) in [(0.25, 1_000.0), (0.5, 10_000.0), (0.75, 100_000.0)] {
            near(quantile(&mut grains, share), expected);
        }
        // Short tasks: no batch of them is cut.
        let short = all.iter().filter(|(of, _)| of.grain < 2_000);
        let mut widths: Vec<f64> = short.map(|(of, _)| of.width as f64).collect();
        for (share, expected) in [(0.25, 16.8), (0.5, 141.4), (0.75, 1_189.0)] {
            near(quantile(&mut widths, share), expected);
        }
        let longest = all.iter().map(|(of, _)| of.width as u64 * of.grain).max().unwrap();
        assert!(longest as f64 <= 1.1 * MOST, "{longest}");
    }

    #[test]
    fn the_default_and_the_peers_are_there() {
        let all = contestants();
        let with = |role| all.iter().filter(move |one| one.role == role).map(|one| one.name);
        assert_eq!(with(Role::Default).collect::<Vec<_>>(), [DEFAULT]);
        assert_eq!(with(Role::Peer).collect::<Vec<_>>(), ["rayon", "tokio", "forte"]);
    }
}
