//! The cost to be seen by `stanchion_machine::presence`: the kernel writes a record whenever a
//! registered thread leaves or takes a processor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use stanchion_machine::{presence, topology};

use crate::Effort;
use crate::cell::{Against, Cell, Column, Contestant};
use crate::work::thread_time;

/// The time of a run.
const LASTING: Duration = Duration::from_millis(30);

/// Returns the cell: the processor time of a yield between two threads on one processor. Where
/// nothing can be seen, both contestants do the same.
pub(crate) fn cell() -> Cell {
    const COLUMNS: &[Column] = &[Column::median("CPU ns", 0)];
    let contestants = [("unseen", false), ("seen", true)].map(|(name, seen)| {
        Contestant::new(name, move |effort: Effort| vec![yields(effort.time(LASTING), seen)])
    });
    let title = "switch, processor time of a yield";
    Cell::new(title, COLUMNS, Against::First, contestants.into())
}

/// Returns the processor time of a yield in nanoseconds.
fn yields(lasting: Duration, seen: bool) -> f64 {
    let processor = topology::processors()[0];
    let stop = AtomicBool::new(false);
    let (nanos, count) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _pinned = topology::pin(processor);
                let _registered = seen.then(presence::register);
                let before = thread_time();
                let mut yields = 0;
                while !stop.load(Relaxed) {
                    thread::yield_now();
                    yields += 1;
                }
                nanos.fetch_add(thread_time() - before, Relaxed);
                count.fetch_add(yields, Relaxed);
            });
        }
        thread::sleep(lasting);
        stop.store(true, Relaxed);
    });
    nanos.into_inner() as f64 / count.into_inner().max(1) as f64
}
