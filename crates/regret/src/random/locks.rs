//! Random cells of mutexes: the contestants and the race of the named grid, in drawn loads.

use std::time::Duration;

use stanchion_formulas::Random;

use super::load::Load;
use super::{Drawn, Entrant, Family, Limits, Stage};
use crate::contestants::CONTESTANTS;
use crate::grid::PHASE;
use crate::race::Race;
use crate::turns::Turns;
use crate::work::Steps;

/// Mutexes.
pub(super) const FAMILY: Family = Family {
    name: "locks",
    operations: "acquisitions",
    limits: Limits {
        mean: Some(1.02),
        p90: Some(1.10),
        worst: Some(1.20),
        processor_time: Some(1.05),
    },
    waits_of: Some("parking_lot"),
    ours_enter: false,
    entrants,
    draw,
};

fn entrants() -> Vec<Entrant> {
    let entrant = |one: &crate::contestants::Contestant| Entrant {
        name: one.name,
        role: one.role,
        sleeps: one.blocks,
    };
    CONTESTANTS.iter().map(entrant).collect()
}

fn draw(random: &mut Random, processors: usize) -> Drawn {
    let load = Load::draw(random, processors);
    let turns = Turns::draw(load.shape, 0.0, random);
    Drawn {
        words: load.words(),
        data: load.data(),
        hogs: load.hogs,
        race: Box::new(move |entrant, stage| {
            Some((CONTESTANTS[entrant].race)(&race(&load, &turns, stage)))
        }),
    }
}

/// Returns the race of a load.
pub(super) fn race<'a>(load: &Load, turns: &'a Turns, stage: &'a Stage<'_>) -> Race<'a> {
    let steps = |nanos| stage.pace.steps(nanos);
    let changes = load.laps[0] != load.laps[1];
    Race {
        threads: load.threads,
        pins: if load.pinned { stage.processors } else { &[] },
        laps: load.laps.map(|lap| Steps { inside: steps(lap.inside), outside: steps(lap.outside) }),
        turns,
        // A short window holds both phases too.
        phase: changes.then(|| Duration::from_nanos(PHASE).min(stage.window / 2)),
        naps: None,
        settle: stage.settle,
        window: stage.window,
        timed: stage.timed,
    }
}
