//! The latency of a lock and an unlock for a single thread.

use lock_api::RawMutex;
use stanchion_simulator::{Failure, Machine, inside};

use super::shared::turn;
use stanchion_study::simulation::{simulation, together};

/// Measures one lock and unlock of a new lock of type `R`, in nanoseconds: the mean of `times`,
/// with all lines in the cache.
pub fn run<R: RawMutex + 'static>(
    machine: &Machine,
    times: u32,
    seed: u64,
) -> Result<f64, Failure> {
    let run = together(&simulation(machine, seed), 1, turn(machine), move || {
        let lock: lock_api::Mutex<R, ()> = lock_api::Mutex::new(());
        move |_| {
            drop(lock.lock());
            let began = inside::time();
            for _ in 0..times {
                drop(lock.lock());
            }
            inside::time().since(began)
        }
    })?;
    let taken = run.result.first().copied().unwrap_or_default();
    Ok(taken.as_picos() as f64 / 1e3 / f64::from(times))
}
