//! Phases of short threads on all processors: alone, beside threads that compute all the time, and
//! beside a second copy of the same.
//!
//! A phase forks threads that compute, and joins them all. So if one thread loses its processor,
//! all others wait for it. The processor time includes that of the hogs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations::{Runtime, spawn};

use super::measure::by;
use super::{LASTING, ROUNDS, cell};
use crate::cell::{Cell, Contestant, Figures};
use crate::race;
use crate::work::{Work, process_time, processors};
use crate::{Effort, Options, Report};

/// The number of threads in a phase for each processor.
const FORKS: usize = 16;
/// The time that each thread computes.
const GRAIN: Duration = Duration::from_micros(20);

/// The program that runs beside the phases.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    Hogs,
    Copy,
}

/// Runs phases for a time and returns their number.
type Phases = fn(Duration) -> u64;

pub(crate) fn cells() -> Vec<Cell> {
    let count = processors();
    let of = |(beside, called): (Beside, String)| {
        let phases: [(&str, bool, Phases); 5] = [
            ("activations", false, |lasting| ours(lasting, true)),
            ("activations off", false, |lasting| ours(lasting, false)),
            ("tokio spawn", false, with_tokio),
            ("rayon scope, spawn", false, with_rayon),
            ("std threads", true, threads),
        ];
        let contestants = phases.map(|(name, is_peer, phases)| {
            let run = move |effort: Effort| beside_what(beside, phases, effort.time(LASTING));
            if is_peer { Contestant::peer(name, run) } else { Contestant::new(name, run) }
        });
        cell(format!("hogs, {called}"), contestants.into()).sampled(0.5)
    };
    [
        (Beside::Nothing, "alone".to_owned()),
        (Beside::Hogs, format!("beside {count} hogs")),
        (Beside::Copy, "two copies".to_owned()),
    ]
    .map(of)
    .into()
}

pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("hogs", cells(), ROUNDS, options, progress)
}

fn beside_what(beside: Beside, phases: Phases, lasting: Duration) -> Figures {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (cpu, begun) = (process_time(), Instant::now());
        match beside {
            Beside::Nothing => by(begun, cpu, phases(lasting)),
            Beside::Hogs => {
                for _ in 0..processors() {
                    scope.spawn(|| {
                        let work = Work::of(1_000);
                        while !over.load(Relaxed) {
                            work.compute();
                        }
                    });
                }
                let figures = by(begun, cpu, phases(lasting));
                over.store(true, Relaxed);
                figures
            }
            Beside::Copy => {
                let copy = scope.spawn(move || phases(lasting));
                let mine = phases(lasting);
                // The time of a phase of one copy.
                let both = mine + copy.join().expect("it ends");
                by(begun, cpu, both.div_ceil(2))
            }
        }
    })
}

/// Calls `phase` until the time is up. Returns the number of calls.
fn repeat(lasting: Duration, mut phase: impl FnMut()) -> u64 {
    let (mut phases, begun) = (0, Instant::now());
    while begun.elapsed() < lasting {
        phase();
        phases += 1;
    }
    phases
}

fn work() -> Work {
    Work::of(GRAIN.as_nanos() as u64)
}

fn ours(lasting: Duration, activations: bool) -> u64 {
    let runtime = Runtime::builder().activations(activations).build().expect("few threads");
    let (work, count) = (work(), FORKS * processors());
    runtime.run(move || {
        let mut handles = Vec::with_capacity(count);
        repeat(lasting, || {
            handles.extend((0..count).map(|_| spawn(move || work.compute())));
            for handle in handles.drain(..) {
                handle.join().expect("it computes");
            }
        })
    })
}

fn with_tokio(lasting: Duration) -> u64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(processors())
        .build()
        .expect("few threads");
    let (work, count) = (work(), FORKS * processors());
    let measuring = runtime.spawn(async move {
        let (mut phases, begun) = (0, Instant::now());
        while begun.elapsed() < lasting {
            let tasks: Vec<_> =
                (0..count).map(|_| tokio::spawn(async move { work.compute() })).collect();
            for task in tasks {
                task.await.expect("it computes");
            }
            phases += 1;
        }
        phases
    });
    runtime.block_on(measuring).expect("it ends")
}

fn with_rayon(lasting: Duration) -> u64 {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(processors()).build();
    let (work, count) = (work(), FORKS * processors());
    pool.expect("few threads").install(|| {
        repeat(lasting, || {
            rayon::scope(|scope| {
                for _ in 0..count {
                    scope.spawn(move |_| work.compute());
                }
            });
        })
    })
}

fn threads(lasting: Duration) -> u64 {
    let (work, count) = (work(), FORKS * processors());
    repeat(lasting, || {
        thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(move || work.compute());
            }
        });
    })
}
