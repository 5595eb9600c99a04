//! A round in which every thread passes once through the lock, then loops until all have: the
//! paper's figure 4.3.
//!
//! Each round is a run of its own, and rounds differ by their seeds. A thread that is through reads
//! the counter until it equals the number of threads, as the paper's did. Each increment
//! invalidates the thread's copy of the counter.

use lock_api::RawMutex;
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::shared::{Shared, turn};
use stanchion_study::simulation::{simulation, together};

/// The settings of a round.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The number of threads.
    pub threads: usize,
    /// The seed of the run's random numbers.
    pub seed: u64,
}

/// Runs one round on `machine`, with a new lock of type `R`. Returns the nanoseconds from the first
/// start until the last thread is through, divided by the threads.
pub fn run<R: RawMutex + 'static>(machine: &Machine, pass: &Pass) -> Result<f64, Failure> {
    let (turn, threads) = (turn(machine), pass.threads);
    let run = together(&simulation(machine, pass.seed), threads, turn, move || {
        let lock: lock_api::Mutex<R, ()> = lock_api::Mutex::new(());
        // The counter is beside the lock, not in it, because it is also read without the lock.
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
