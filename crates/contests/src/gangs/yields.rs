//! The cost to be seen: the kernel writes a record whenever a registered thread leaves or takes a
//! processor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use machine::{presence, topology};

use crate::measure::{self, median};
use crate::options::Options;

pub(crate) fn run(options: &Options) {
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds() {
        for (seen, figures) in rounds.iter_mut().enumerate() {
            figures.push(yields(options, seen == 1));
        }
    }
    println!("\nswitch: processor time of a yield between two threads on one processor, ns");
    for (name, figures) in ["unseen", "seen by machine::presence"].iter().zip(&mut rounds) {
        println!("{name:<34} {:>11.0}", median(figures));
    }
    if let Err(refused) = presence::status() {
        println!("there is nothing to be seen by here: {refused}");
    }
}

/// Returns the processor time of a yield in nanoseconds.
fn yields(options: &Options, seen: bool) -> f64 {
    let processor = topology::processors()[0];
    let stop = AtomicBool::new(false);
    let (nanos, count) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _pinned = topology::pin(processor);
                let _registered = seen.then(presence::register);
                let before = measure::thread_time();
                let mut yields = 0;
                while !stop.load(Relaxed) {
                    thread::yield_now();
                    yields += 1;
                }
                nanos.fetch_add(measure::thread_time() - before, Relaxed);
                count.fetch_add(yields, Relaxed);
            });
        }
        thread::sleep(options.lasting());
        stop.store(true, Relaxed);
    });
    nanos.into_inner() as f64 / count.into_inner().max(1) as f64
}
