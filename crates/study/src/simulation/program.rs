//! Threads that start together, each on a processor of its own.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use stanchion_simulator::{Failure, Machine, Run, Simulation, Time, inside};

use super::super::context::Stop;

/// Returns a simulation of `machine` that takes its random numbers from `seed`.
pub fn simulation(machine: &Machine, seed: u64) -> Simulation {
    Simulation::new(machine.clone()).seed(seed)
}

/// Runs a body on `threads` threads, thread `index` on processor `index`, and returns the result of
/// each thread with the statistics of the run. `prepare` makes the body, which takes the thread's
/// index. It also makes the data that the threads share, inside the run, so that their addresses
/// belong to the run.
///
/// All threads start within one turn of a loop of each other; the seed decides the offsets. No real
/// machine starts its threads at the same picosecond.
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
        // All threads are made by this time, with room to spare.
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

/// Computes until `gate`, and then for up to one turn more.
fn wait_for(gate: Time, turn: f64) {
    let late = inside::entropy() % (turn as u64).max(1);
    // The work is done in ever shorter parts, because an interrupt delays the end of the part that
    // it falls into.
    loop {
        let left = gate.since(inside::time()).as_nanos();
        inside::work(left.div_ceil(2) + if left < 2 { late } else { 0 });
        if left < 2 {
            return;
        }
    }
}

/// Turns a failed run into the end of its experiment.
pub fn failed(machine: &Machine, failure: &Failure) -> Stop {
    Stop::Failed(format!("on {}: {failure}", machine.name))
}
