//! Every thread passes once through the lock, then loops until all have: the paper's figure 4.3.
//!
//! A round is a run of its own; rounds differ by their seeds. A thread that is through reads the
//! counter until it is the number of threads, as the paper's did: each increment takes that copy
//! away.

use lock_api::RawMutex;
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::shared::{Shared, turn};
use stanchion_study::simulation::{simulation, together};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// How many threads take part.
    pub threads: usize,
    /// The seed of the run's chances.
    pub seed: u64,
}

/// Runs one round on `machine`, with a new lock of type `R`: nanoseconds from the first start until
/// the last thread is through, divided by the threads.
pub fn run<R: RawMutex + 'static>(machine: &Machine, pass: &Pass) -> Result<f64, Failure> {
    let (turn, threads) = (turn(machine), pass.threads);
    let run = together(&simulation(machine, pass.seed), threads, turn, move || {
        let lock: lock_api::Mutex<R, ()> = lock_api::Mutex::new(());
        // Beside the lock, not in it: it is read without the lock, too.
        let shared = Shared::default();
        move |_| {
            let began = inside::time();
            let held = lock.lock();
            let before = shared.counter.read();
            shared.count(before, turn);
            drop(held);
            while shared.counter.read() < threads as u64 {
                shared.counter.watch();
            }
            (began, inside::time())
        }
    })?;
    let began = run.result.iter().map(|&(began, _)| began).min().unwrap_or_default();
    let through: Time = run.result.iter().map(|&(_, ended)| ended).max().unwrap_or_default();
    Ok(through.since(began).as_picos() as f64 / 1e3 / threads as f64)
}
