//! The time until the runtime knows that a thread has blocked in the kernel, and the time until
//! another thread runs in its place.
//!
//! Times start before the call that blocks, so they include its way into the kernel. In one row
//! they start with the kernel's own record of the switch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations::{Runtime, Upcall, spawn, yield_now};
use stanchion_machine::clock::{Ticks, now};

use super::{LASTING, ROUNDS};
use crate::Options;
use crate::report::{Report, Row, Table, Value};
use crate::statistics::quantile;
use crate::work::processors;

/// The time that the thread blocks: longer than any hand-over takes.
const BLOCKED: Duration = Duration::from_millis(4);

/// Runs each measurement in all rounds. The quantiles are those of all rounds together.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    type Measurement = (&'static str, usize, fn(Duration) -> Vec<f64>);
    let measurements: [Measurement; 4] = [
        ("`Blocked`, seen by a running processor", 2, |lasting| seen(lasting).0),
        ("the same, since the switch, less than", 2, |lasting| seen(lasting).1),
        ("another thread runs, all else idle", 1, replaced),
        ("the same, with `blocking`", 1, told),
    ];
    let mut rows = Vec::new();
    for (name, needed, measure) in measurements {
        if !options.wants("upcall", name) || processors() < needed {
            continue;
        }
        progress(&format!("upcall: {name}"));
        let rounds = 0..options.rounds.unwrap_or(ROUNDS);
        let lasting = options.effort.time(LASTING);
        let mut lags: Vec<f64> = rounds.flat_map(|_| measure(lasting)).collect();
        let times = Value::number(lags.len() as f64, 0);
        let [half, most] = [0.5, 0.99].map(|share| quantile(&mut lags, share) / 1e3);
        let values = vec![times, Value::number(half, 1), Value::number(most, 1)];
        rows.push(Row { name: name.to_owned(), values });
    }
    let mut report = Report::default();
    if !rows.is_empty() {
        let columns = ["times", "p50 µs", "p99 µs"].map(str::to_owned).into();
        report.table(Table { title: "upcall".to_owned(), columns, rows });
    }
    report
}

/// The time at which the thread was about to block, or 0 while it is not.
#[derive(Default)]
struct Since(AtomicU64);

impl Since {
    fn block(&self, wrapped: impl FnOnce(&mut dyn FnMut())) {
        wrapped(&mut || {
            self.0.store(now().to_bits(), Relaxed);
            thread::sleep(BLOCKED);
        });
        self.0.store(0, Relaxed);
    }

    fn lag(&self) -> Option<f64> {
        let since = self.0.load(Relaxed);
        (since != 0).then(|| now().nanos_since(Ticks::from_bits(since)) as f64)
    }
}

/// One of two processors runs a thread that yields. After each yield it asks whether the runtime
/// has been told that the other thread blocked. Returns the times that this thread sees, and the
/// times that the runtime has recorded itself: from the kernel's record of the switch on, to a
/// power of two.
fn seen(lasting: Duration) -> (Vec<f64>, Vec<f64>) {
    let runtime = Arc::new(Runtime::new(2).expect("few threads"));
    let shared = runtime.clone();
    let since = Arc::new(Since::default());
    let [begun, over] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (begins, watched) = (begun.clone(), Arc::new(AtomicBool::new(false)));
    let watches = watched.clone();
    let watcher = {
        let (since, over) = (since.clone(), over.clone());
        runtime.spawn(move || {
            watches.store(true, Relaxed);
            let mut lags = Vec::new();
            // A thread stays on the kernel thread on which it began. So the other thread must not
            // begin on this one.
            while !begun.load(Relaxed) {
                thread::yield_now();
            }
            let mut before = shared.metrics().upcalls(Upcall::Blocked);
            while !over.load(Relaxed) {
                yield_now();
                let upcalls = shared.metrics().upcalls(Upcall::Blocked);
                if upcalls != before {
                    before = upcalls;
                    // Another block: one of the memory allocator, or one that is over already.
                    lags.extend(since.lag().filter(|&lag| lag < BLOCKED.as_nanos() as f64));
                }
            }
            lags
        })
    };
    while !watched.load(Relaxed) {
        thread::yield_now();
    }
    let blocks = runtime.spawn(move || {
        begins.store(true, Relaxed);
        let begun = Instant::now();
        while begun.elapsed() < lasting {
            since.block(|block| block());
            // Yield, so that the watcher sees the next block as another one.
            yield_now();
        }
        over.store(true, Relaxed);
    });
    blocks.join().expect("it ends");
    let lags = watcher.join().expect("it ends");
    let metrics = runtime.metrics();
    let noted = metrics.latency(Upcall::Blocked).buckets().flat_map(|(less_than, count)| {
        let nanos = less_than.as_nanos() as f64;
        (0..count).map(move |_| nanos)
    });
    (lags, noted.collect())
}

/// The only processor of the runtime blocks while a thread is ready and no other thread is awake.
fn replaced(lasting: Duration) -> Vec<f64> {
    one_behind(lasting, |block| block())
}

fn told(lasting: Duration) -> Vec<f64> {
    one_behind(lasting, |block| stanchion_activations::blocking(block))
}

fn one_behind(lasting: Duration, wrapped: fn(&mut dyn FnMut())) -> Vec<f64> {
    let runtime = Runtime::new(1).expect("few threads");
    runtime.run(move || {
        let (since, begun) = (Arc::new(Since::default()), Instant::now());
        let mut lags = Vec::new();
        while begun.elapsed() < lasting {
            // The thread is back from a block, perhaps without a virtual processor. First it waits
            // for one, so that it has one to lose.
            yield_now();
            let seen = since.clone();
            let behind = spawn(move || seen.lag());
            since.block(wrapped);
            // None: that thread ran only after the block.
            lags.extend(behind.join().expect("it ends"));
        }
        lags
    })
}
