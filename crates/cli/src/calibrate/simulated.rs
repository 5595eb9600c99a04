//! The two programs in virtual time.

use lock_api::{Mutex, RawMutex};
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::real::random;
use super::{AWAY, HOLD, ROUNDS};
use stanchion_simulated_locks::latency;
use stanchion_study::measure::median;
use stanchion_study::simulation::{simulation, together};

/// Threads begin up to so many nanoseconds apart, as the seed says.
const APART: f64 = 100.0;

/// Nanoseconds for one lock and unlock of a new lock, by one thread alone.
pub(super) fn alone<R: RawMutex + 'static>(machine: &Machine) -> Result<f64, Failure> {
    latency::run::<R>(machine, 1_000, 1)
}

/// The median of `runs` runs of two threads with different seeds: nanoseconds for each time the
/// lock was taken.
pub(super) fn pair<R: RawMutex + 'static>(machine: &Machine, runs: u32) -> Result<f64, Failure> {
    let runs: Result<Vec<f64>, Failure> = (0..runs).map(|run| once::<R>(machine, run)).collect();
    runs.map(median)
}

fn once<R: RawMutex + 'static>(machine: &Machine, number: u32) -> Result<f64, Failure> {
    let run = together(&simulation(machine, u64::from(number)), 2, APART, move || {
        let lock = Mutex::<R, ()>::new(());
        move |me| {
            let began = inside::time();
            let mut state = random(1 + me as u64 + 2 * u64::from(number));
            for _ in 0..ROUNDS {
                let held = lock.lock();
                inside::work(HOLD);
                drop(held);
                state = random(state);
                inside::work(state % (2 * AWAY + 1));
            }
            (began, inside::time())
        }
    })?;
    let began = run.result.iter().map(|&(began, _)| began).min().unwrap_or_default();
    let through: Time = run.result.iter().map(|&(_, through)| through).max().unwrap_or_default();
    Ok(through.since(began).as_picos() as f64 / 1e3 / f64::from(2 * ROUNDS))
}
