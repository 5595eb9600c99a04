//! Threads that start together, each on a processor of its own.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use stanchion_simulator::{Failure, Machine, Run, Simulation, Time, inside};

use super::super::context::Stop;

/// A run on `machine` whose chances come from `seed`.
pub fn simulation(machine: &Machine, seed: u64) -> Simulation {
    Simulation::new(machine.clone()).seed(seed)
}

/// Runs what `prepare` makes, with the thread's index, on `threads` threads, thread `index` on
/// processor `index`; returns what each returned, with the statistics of the run. What they share
/// is made by `prepare`, inside the run, so that its addresses are the run's own.
///
/// All start at the same moment give or take one turn of a loop, which the seed decides: nothing in
/// a real machine starts to the picosecond.
pub fn together<T: 'static, B: Fn(usize) -> T + 'static>(
    simulation: &Simulation,
    threads: usize,
    turn: f64,
    prepare: impl FnOnce() -> B + 'static,
) -> Result<Run<Vec<T>>, Failure> {
    let spawn = simulation.machine().scheduling.spawn;
    simulation.run(move || {
        let body = Rc::new(prepare());
        let results: Rc<RefCell<Vec<Option<T>>>> =
            Rc::new(RefCell::new((0..threads).map(|_| None).collect()));
        let panicked = Rc::new(Cell::new(None));
        // All are made by then, with room to spare.
        let gate = inside::time() + spawn * (4 * threads as u64) + Time::millis(1);
        let crew: Vec<_> = (0..threads)
            .map(|index| {
                let (body, results, panicked) = (body.clone(), results.clone(), panicked.clone());
                let thread = move || {
                    let done = catch_unwind(AssertUnwindSafe(|| {
                        wait_for(gate, turn);
                        body(index)
                    }));
                    match done {
                        Ok(result) => results.borrow_mut()[index] = Some(result),
                        Err(payload) => panicked.set(Some(payload)),
                    }
                };
                inside::spawn(None, Some(index), Box::new(thread))
            })
            .collect();
        for thread in crew {
            inside::join(thread);
        }
        if let Some(payload) = panicked.take() {
            resume_unwind(payload);
        }
        results.take().into_iter().flatten().collect()
    })
}

/// Computes until `gate`, and up to one turn longer.
fn wait_for(gate: Time, turn: f64) {
    let late = inside::entropy() % (turn as u64).max(1);
    // In ever shorter parts, because an interrupt delays the end of the part that it falls into.
    loop {
        let left = gate.since(inside::time()).as_nanos();
        inside::work(left.div_ceil(2) + if left < 2 { late } else { 0 });
        if left < 2 {
            return;
        }
    }
}

/// A run that failed, as the end of an experiment.
pub fn failed(machine: &Machine, failure: &Failure) -> Stop {
    Stop::Failed(format!("on {}: {failure}", machine.name))
}
