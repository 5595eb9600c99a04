//! Models of the observed state of a worker: a block is counted once, and its end once, whichever
//! threads look.
//!
//! - `observed_block_that_ends`. Threads: a worker that is back from a block, one that looks at
//!   it. Failure it looks for: the end is counted without the block, or not at all, or the block
//!   after its end.
//! - `observed_by_two_bounded`. Threads: the same, and another one that looks. Failure it looks
//!   for: the same; both count.
//!
//! Every model prints `model NAME: N executions`.

use stanchion_activations_loom::__internal::{Observed, ObservedState};
use stanchion_activations_loom::Upcall;
use stanchion_machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Ticks;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A worker that is blocked, and the counts of its upcalls.
struct Worker {
    /// The state that is tested. Moved by each thread that looks.
    observed: ObservedState,
    /// False while the worker is blocked. The worker sets it when it comes back.
    runs: AtomicBool,
    /// The counted upcalls `Blocked`. Raised by the thread that is first to see one.
    blocked: AtomicU32,
    /// The counted upcalls `Unblocked`. Raised likewise.
    unblocked: AtomicU32,
}

impl Worker {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            observed: ObservedState::new(),
            runs: AtomicBool::fresh(false),
            blocked: AtomicU32::fresh(0),
            unblocked: AtomicU32::fresh(0),
        })
    }

    /// Looks at the worker as `upcalls::look` does, at this time.
    fn look(&self, time: u64) {
        let observation = self.observed.read();
        // Relaxed: as for a look at a record that is being written.
        let state =
            if self.runs.load(Ordering::Relaxed) { Observed::Runs } else { Observed::Blocked };
        let now = Ticks::from_bits(time << 2);
        if observation.state() == state || !self.observed.update(observation, state, now) {
            return;
        }
        for upcall in observation.upcalls(state) {
            let count = match upcall {
                Upcall::Blocked => &self.blocked,
                Upcall::Unblocked => &self.unblocked,
                Upcall::Preempted | Upcall::ProcessorAdded => unreachable!("it never is"),
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Comes back from the block, and looks at itself.
    fn come_back(&self) {
        self.runs.store(true, Ordering::Relaxed);
        self.look(0);
    }
}

fn block_that_ends(name: &str, model: Model, lookers: u64) {
    explore(name, model, move || {
        let worker = Worker::new();
        let lookers: Vec<_> = (1..=lookers)
            .map(|time| {
                let worker = worker.clone();
                thread::spawn(move || worker.look(time))
            })
            .collect();
        worker.come_back();
        lookers.into_iter().for_each(|looker| looker.join().expect("no panic"));
        // Its next scheduling point.
        worker.look(0);
        let get = |count: &AtomicU32| count.load(Ordering::Relaxed);
        assert!(get(&worker.blocked) <= 1, "it blocked once");
        assert_eq!(get(&worker.unblocked), get(&worker.blocked));
    });
}

#[test]
fn observed_block_that_ends() {
    block_that_ends("observed_block_that_ends", Model::new(), 1);
}

#[test]
fn observed_by_two_bounded() {
    block_that_ends("observed_by_two_bounded", Model::new().preemptions(3), 2);
}
