//! Random cells of queues, stacks and heaps: threads that put values in and take them out.

use std::time::Duration;

use serde_json::json;
use stanchion_contests::structures::{self, Load, Window};
use stanchion_formulas::Random;
use stanchion_study::measure::jain;
use stanchion_study::units::{count, nanos};

use super::draw::{chance, log_uniform, one_of, uniform, zero_or_log_uniform};
use super::load::{MOST_THREADS, company, surroundings};
use super::{Drawn, Entrant, Family, Limits};
use crate::contestants::Role;
use crate::race::Figures;
use crate::turns::{Shape, Turns};
use crate::waits::Waits;

/// Queues, with a bound and without.
pub(super) const QUEUES: Family = family(
    "queues",
    "parking_lot Mutex<VecDeque>",
    || entrants(&queues()),
    |random, processors| draw(queues(), random, processors),
);

/// Stacks.
pub(super) const STACKS: Family = family(
    "stacks",
    "parking_lot Mutex<Vec>",
    || entrants(&stacks()),
    |random, processors| draw(stacks(), random, processors),
);

/// Priority queues.
pub(super) const HEAPS: Family = family(
    "heaps",
    "parking_lot Mutex<BinaryHeap>",
    || entrants(&heaps()),
    |random, processors| draw(heaps(), random, processors),
);

const fn family(
    name: &'static str,
    waits_of: &'static str,
    entrants: fn() -> Vec<Entrant>,
    draw: fn(&mut Random, usize) -> Drawn,
) -> Family {
    Family {
        name,
        operations: "values that were put in and taken out",
        limits: Limits { mean: Some(1.03), p90: None, worst: Some(1.20), processor_time: None },
        waits_of: Some(waits_of),
        entrants,
        draw,
    }
}

/// The least and the most nanoseconds of work between two operations, if there is any.
const WORK: (f64, f64) = (10.0, 20_000.0);

/// The least and the most room of a queue with a bound.
const ROOM: (f64, f64) = (4.0, 4_096.0);

/// A function that measures a structure.
type Run = fn(Load<'_>, Duration) -> Window;

/// A contestant: one structure in each kind of cell, or none.
struct Contestant {
    /// The name in tables.
    name: &'static str,
    /// Its part in the judgement.
    role: Role,
    /// The structure for each kind of cell.
    runs: [Option<Run>; 2],
}

/// The contestants of a family.
struct Contestants {
    /// All contestants, the default first.
    all: Vec<Contestant>,
    /// The kinds of cells, in words for a reader.
    kinds: &'static [&'static str],
}

/// Returns the queues. A kind of queue of another crate is one contestant, with and without a
/// bound, and so are the two that we recommend.
fn queues() -> Contestants {
    let recommended = ["LockedRing", "LockedQueue<Barging>"];
    let name = |name: &'static str| match name {
        "crossbeam ArrayQueue" | "crossbeam SegQueue" => "crossbeam",
        "concurrent-queue, bounded" | "concurrent-queue, unbounded" => "concurrent-queue",
        name if recommended.contains(&name) => "LockedRing or LockedQueue",
        name => name,
    };
    let all = contestants(
        &[structures::queues(true), structures::queues(false)],
        name,
        "LockedRing or LockedQueue",
    );
    Contestants { all, kinds: &["bounded", "unbounded"] }
}

fn stacks() -> Contestants {
    let all = contestants(&[structures::stacks()], |name| name, "LockedStack Barging");
    Contestants { all, kinds: &["stack"] }
}

fn heaps() -> Contestants {
    let all = contestants(&[structures::heaps()], |name| name, "LockedHeap<Barging>");
    Contestants { all, kinds: &["heap"] }
}

/// Joins the structures of all kinds by the names that `name` gives them.
fn contestants(
    kinds: &[Vec<structures::Entrant>],
    name: impl Fn(&'static str) -> &'static str,
    default: &str,
) -> Vec<Contestant> {
    let mut all: Vec<Contestant> = Vec::new();
    for (kind, entrants) in kinds.iter().enumerate() {
        for entrant in entrants {
            let name = name(entrant.name);
            let at = all.iter().position(|known| known.name == name).unwrap_or_else(|| {
                let role = match entrant.is_peer {
                    true => Role::Peer,
                    false if name == default => Role::Default,
                    false => Role::Policy,
                };
                all.push(Contestant { name, role, runs: [None; 2] });
                all.len() - 1
            });
            all[at].runs[kind] = Some(entrant.run);
        }
    }
    all.sort_by_key(|one| one.role != Role::Default);
    all
}

fn entrants(contestants: &Contestants) -> Vec<Entrant> {
    let entrant = |one: &Contestant| Entrant {
        name: one.name,
        role: one.role,
        sleeps: one.name.starts_with("parking_lot"),
    };
    contestants.all.iter().map(entrant).collect()
}

/// The parameters of a cell.
struct Parameters {
    /// The number of the kind of cell.
    kind: usize,
    /// The load, without its factors.
    load: Load<'static>,
    /// The distribution of the work between operations.
    shape: Shape,
    /// The number of other processes that compute.
    hogs: usize,
}

impl Parameters {
    fn draw(kinds: usize, random: &mut Random, processors: usize) -> Self {
        let kind = uniform(random, 0, kinds - 1);
        let apart = chance(random, 0.5);
        // A producer needs a consumer.
        let threads = uniform(random, if apart { 2 } else { 1 }, MOST_THREADS * processors);
        let work_ns = zero_or_log_uniform(random, WORK.0, WORK.1).round() as u64;
        let shape = one_of(random, &Shape::ALL);
        let hogs = company(random);
        let pinned = chance(random, 0.5);
        let room = log_uniform(random, ROOM.0, ROOM.1).round() as usize;
        let filled = if chance(random, 0.5) { room / 2 } else { 0 };
        let load = Load { threads, work_ns, factors: &[], pinned, apart, room, filled };
        Self { kind, load, shape, hogs }
    }

    fn words(&self, kinds: &[&str]) -> String {
        let load = self.load;
        let mut words = vec![kinds[self.kind].to_owned(), count(load.threads, "thread")];
        if self.is_bounded(kinds) {
            words.push(format!("room for {}", load.room));
        }
        words.push(match load.filled {
            0 => "empty at first".to_owned(),
            filled => format!("{filled} in it at first"),
        });
        words.push(format!("{} between operations", nanos(load.work_ns as f64)));
        if load.work_ns > 0 {
            words.push(self.shape.name().to_owned());
        }
        if load.apart {
            words.push("producers and consumers apart".to_owned());
        }
        words.extend(surroundings(self.hogs, load.pinned));
        words.join(", ")
    }

    fn is_bounded(&self, kinds: &[&str]) -> bool {
        kinds[self.kind] == "bounded"
    }
}

fn draw(contestants: Contestants, random: &mut Random, processors: usize) -> Drawn {
    let of = Parameters::draw(contestants.kinds.len(), random, processors);
    let factors = Turns::draw(of.shape, 0.0, random).outside();
    Drawn {
        words: of.words(contestants.kinds),
        data: json!({
            "kind": contestants.kinds[of.kind],
            "threads": of.load.threads,
            "room": of.is_bounded(contestants.kinds).then_some(of.load.room),
            "filled": of.load.filled,
            "work_ns": of.load.work_ns,
            "lengths": of.shape.name(),
            "apart": of.load.apart,
            "hogs": of.hogs,
            "pinned": of.load.pinned,
        }),
        hogs: of.hogs,
        race: Box::new(move |entrant, stage| {
            let run = contestants.all[entrant].runs[of.kind]?;
            let load = Load { factors: &factors, ..of.load };
            let window = run(load, stage.window + stage.timed);
            let mut waits = Waits::default();
            window.waits.iter().for_each(|&(wait, times)| waits.note_many(wait, times));
            let figures = Figures {
                throughput: 1e9 / window.ns_per_pair,
                cost: window.cpu_per_pair,
                fairness: jain(&window.pairs),
                longest: window.longest_ns,
                ..Figures::default()
            };
            Some((figures.with_waits(&waits), waits))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::super::draw::source;
    use super::super::draw::tests::{near, quantile};
    use super::*;
    use crate::work::Pace;

    fn parameters() -> Vec<Parameters> {
        (0..100_000).map(|index| Parameters::draw(2, &mut source("queues", 1, index), 2)).collect()
    }

    #[test]
    fn cells_have_the_quantiles_of_their_distributions() {
        let all = parameters();
        let number =
            |is: &dyn Fn(&Parameters) -> bool| all.iter().filter(|of| is(of)).count() as f64;
        near(number(&|of| of.kind == 0), 50_000.0);
        near(number(&|of| of.load.apart), 50_000.0);
        near(number(&|of| of.load.filled > 0), 50_000.0);
        near(number(&|of| of.load.pinned), 50_000.0);
        near(number(&|of| of.load.work_ns == 0), 10_000.0);
        let mut rooms: Vec<f64> = all.iter().map(|of| of.load.room as f64).collect();
        for (share, expected) in [(0.25, 22.6), (0.5, 128.0), (0.75, 724.0)] {
            near(quantile(&mut rooms, share), expected);
        }
        let worked = all.iter().filter(|of| of.load.work_ns > 0);
        let mut work: Vec<f64> = worked.map(|of| of.load.work_ns as f64).collect();
        for (share, expected) in [(0.25, 66.9), (0.5, 447.0), (0.75, 2_990.0)] {
            near(quantile(&mut work, share), expected);
        }
        assert!(all.iter().all(|of| 2 * of.load.filled <= of.load.room && of.load.threads <= 16));
        assert!(all.iter().all(|of| of.load.threads >= if of.load.apart { 2 } else { 1 }));
    }

    #[test]
    fn every_default_and_peer_hands_values_on_in_some_cell() {
        let stage = Stage {
            processors: &[],
            pace: Pace::measure(),
            settle: Duration::ZERO,
            window: Duration::from_millis(5),
            timed: Duration::ZERO,
        };
        for family in [QUEUES, STACKS, HEAPS] {
            let entrants = (family.entrants)();
            assert_eq!(entrants[0].role, Role::Default, "{}", family.name);
            assert!(entrants.iter().any(|one| Some(one.name) == family.waits_of));
            let mut had = vec![false; entrants.len()];
            for index in 0..6 {
                let drawn = (family.draw)(&mut source(family.name, 1, index), 2);
                for (entrant, one) in entrants.iter().enumerate() {
                    if one.role == Role::Policy {
                        continue;
                    }
                    if let Some((figures, _)) = (drawn.race)(entrant, &stage) {
                        had[entrant] |= figures.throughput > 1_000.0;
                    }
                }
            }
            for (one, had) in entrants.iter().zip(had) {
                assert!(had || one.role == Role::Policy, "{}: {}", family.name, one.name);
            }
        }
    }
}
