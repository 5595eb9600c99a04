//! Random cells of queues, stacks and heaps: threads that put values in and take them out. Counters
//! too: threads that add to one.

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

/// Queues with a bound.
pub(super) const BOUNDED_QUEUES: Family = family(
    "bounded-queues",
    "parking_lot Mutex<VecDeque>",
    || entrants(&bounded_queues()),
    |random, processors| draw(bounded_queues(), random, processors),
);

/// Queues that grow.
pub(super) const UNBOUNDED_QUEUES: Family = family(
    "unbounded-queues",
    "parking_lot Mutex<VecDeque>",
    || entrants(&unbounded_queues()),
    |random, processors| draw(unbounded_queues(), random, processors),
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

/// Counters. All of ours take part, because one of them is for sums only.
pub(super) const COUNTERS: Family = Family {
    operations: "pairs of additions",
    limits: Limits { mean: None, p90: None, worst: None, processor_time: None },
    ours_enter: true,
    ..family(
        "counters",
        "parking_lot Mutex<u64>",
        || entrants(&counters()),
        |random, processors| draw(counters(), random, processors),
    )
};

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
        ours_enter: false,
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

/// A contestant.
struct Contestant {
    /// The name in tables.
    name: &'static str,
    /// Its part in the judgement.
    role: Role,
    /// Measures the structure.
    run: Run,
}

/// The contestants of a family.
struct Contestants {
    /// All contestants, the default first.
    all: Vec<Contestant>,
    /// The structure, in a word for a reader.
    kind: &'static str,
}

/// The kind of structures that have room for so many values only.
const BOUNDED: &str = "bounded queue";

/// The kind of structures that values are not put into.
const COUNTER: &str = "counter";

fn bounded_queues() -> Contestants {
    contestants(structures::queues(true), BOUNDED, "LockedRing")
}

fn unbounded_queues() -> Contestants {
    contestants(structures::queues(false), "unbounded queue", "SegmentedQueue")
}

fn stacks() -> Contestants {
    contestants(structures::stacks(), "stack", "LockedStack Barging")
}

fn heaps() -> Contestants {
    contestants(structures::heaps(), "heap", "LockedArrayHeap<Barging>")
}

fn counters() -> Contestants {
    contestants(structures::counters(), COUNTER, "FetchAddCounter")
}

/// Makes contestants of structures, and the default of the one with that name.
fn contestants(
    entrants: Vec<structures::Entrant>,
    kind: &'static str,
    default: &str,
) -> Contestants {
    let contestant = |entrant: structures::Entrant| {
        let role = match entrant.is_peer {
            true => Role::Peer,
            false if entrant.name == default => Role::Default,
            false => Role::Policy,
        };
        // A reader must not take it for a counter that hands out numbers.
        let name = match entrant.name {
            "ShardedCounter" => "ShardedCounter (sum only)",
            name => name,
        };
        Contestant { name, role, run: entrant.run }
    };
    let mut all: Vec<Contestant> = entrants.into_iter().map(contestant).collect();
    all.sort_by_key(|one| one.role != Role::Default);
    Contestants { all, kind }
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
    /// The load, without its factors.
    load: Load<'static>,
    /// The distribution of the work between operations.
    shape: Shape,
    /// The number of other processes that compute.
    hogs: usize,
}

impl Parameters {
    fn draw(kind: &str, random: &mut Random, processors: usize) -> Self {
        // Without use: the first release drew it, and the cells of stacks and heaps stay the same.
        uniform(random, 0, 0);
        // A counter has no producers.
        let apart = chance(random, 0.5) && kind != COUNTER;
        // A producer needs a consumer.
        let threads = uniform(random, if apart { 2 } else { 1 }, MOST_THREADS * processors);
        let work_ns = zero_or_log_uniform(random, WORK.0, WORK.1).round() as u64;
        let shape = one_of(random, &Shape::ALL);
        let hogs = company(random);
        let pinned = chance(random, 0.5);
        let room = log_uniform(random, ROOM.0, ROOM.1).round() as usize;
        let filled = if chance(random, 0.5) && kind != COUNTER { room / 2 } else { 0 };
        let load = Load { threads, work_ns, factors: &[], pinned, apart, room, filled };
        Self { load, shape, hogs }
    }

    fn words(&self, kind: &str) -> String {
        let load = self.load;
        let mut words = vec![kind.to_owned(), count(load.threads, "thread")];
        if kind == BOUNDED {
            words.push(format!("room for {}", load.room));
        }
        match load.filled {
            _ if kind == COUNTER => {}
            0 => words.push("empty at first".to_owned()),
            filled => words.push(format!("{filled} in it at first")),
        }
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
}

fn draw(contestants: Contestants, random: &mut Random, processors: usize) -> Drawn {
    let of = Parameters::draw(contestants.kind, random, processors);
    let factors = Turns::draw(of.shape, 0.0, random).outside();
    Drawn {
        words: of.words(contestants.kind),
        data: json!({
            "kind": contestants.kind,
            "threads": of.load.threads,
            "room": (contestants.kind == BOUNDED).then_some(of.load.room),
            "filled": of.load.filled,
            "work_ns": of.load.work_ns,
            "lengths": of.shape.name(),
            "apart": of.load.apart,
            "hogs": of.hogs,
            "pinned": of.load.pinned,
        }),
        hogs: of.hogs,
        race: Box::new(move |entrant, stage| {
            let run = contestants.all[entrant].run;
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
        let of = |index| Parameters::draw(BOUNDED, &mut source("bounded-queues", 1, index), 2);
        (0..100_000).map(of).collect()
    }

    #[test]
    fn cells_have_the_quantiles_of_their_distributions() {
        let all = parameters();
        let number =
            |is: &dyn Fn(&Parameters) -> bool| all.iter().filter(|of| is(of)).count() as f64;
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
        let pace = Pace::measure();
        let stage = |window| Stage {
            processors: &[],
            pace,
            settle: Duration::ZERO,
            window,
            timed: Duration::ZERO,
        };
        for family in [BOUNDED_QUEUES, UNBOUNDED_QUEUES, STACKS, HEAPS, COUNTERS] {
            let entrants = (family.entrants)();
            assert_eq!(entrants[0].role, Role::Default, "{}", family.name);
            assert!(entrants.iter().any(|one| Some(one.name) == family.waits_of));
            let mut had = vec![false; entrants.len()];
            // On a busy machine, the threads of a cell may get no processor in a short window. So
            // those that have handed nothing on get longer ones.
            for window in [5, 50, 500, 5_000].map(Duration::from_millis) {
                let done = had.clone();
                for index in 0..6 {
                    let drawn = (family.draw)(&mut source(family.name, 1, index), 2);
                    for (entrant, one) in entrants.iter().enumerate() {
                        if done[entrant] || one.role == Role::Policy {
                            continue;
                        }
                        if let Some((figures, _)) = (drawn.race)(entrant, &stage(window)) {
                            // More than five values in a window.
                            had[entrant] |= figures.throughput * window.as_secs_f64() > 5.0;
                        }
                    }
                }
            }
            for (one, had) in entrants.iter().zip(had) {
                assert!(had || one.role == Role::Policy, "{}: {}", family.name, one.name);
            }
        }
    }
}
