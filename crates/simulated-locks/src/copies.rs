//! Processors that run a critical section on private copies, beside others that share one copy.
//! Section 5.1 of the paper finds in this way the demands of a section and of spinning on the bus.
//!
//! A processor with a private copy never waits for a lock, so only the bus slows it.

use std::cell::Cell;

use lock_api::RawMutex;
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::shared::Shared;
use stanchion_study::simulation::{simulation, together};

/// The settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    /// Processors with a lock and a counter each (the paper's P).
    pub private: usize,
    /// Processors that share a lock and a counter (the paper's Q). One of them holds the lock or is
    /// about to, and the others wait.
    pub sharing: usize,
    /// The number of sections of each processor with a private copy.
    pub sections: u64,
    /// Nanoseconds of one turn of a loop. It is not taken from the machine, because an experiment
    /// may change the machine's scale to change only the locks' delays.
    pub turn: f64,
    /// The seed of the run's random numbers.
    pub seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// Nanoseconds for one lock, section and unlock on a private copy.
    pub section: f64,
    /// Nanoseconds for which each of these occupied the bus.
    pub bus: f64,
    /// Read misses, for each section of the sharing processors and each processor that waited for
    /// it; 0 if no processor waited.
    pub misses: f64,
}

/// Runs the measurement on `machine`, with locks of type `R`.
pub fn run<R: RawMutex + 'static>(machine: &Machine, copies: &Copies) -> Result<Beside, Failure> {
    let Copies { private, sharing, sections, turn, seed } = *copies;
    let run = together(&simulation(machine, seed), private + sharing, turn, move || {
        let new = || lock_api::Mutex::<R, Shared>::new(Shared::default());
        let locks: Vec<_> = (0..=private).map(|_| new()).collect();
        // The counter has no cost: it belongs to the experiment, not to the program.
        let running = Cell::new(private);
        move |index| {
            let lock = &locks[index.min(private)];
            let began = inside::time();
            let mut done = 0;
            while if index < private { done < sections } else { running.get() > 0 } {
                let shared = lock.lock();
                let before = shared.counter.read();
                shared.count(before, turn);
                drop(shared);
                done += 1;
            }
            running.set(running.get() - usize::from(index < private));
            (done, inside::time().since(began))
        }
    })?;
    let (own, shared) = run.result.split_at(private);
    let all = (private as u64 * sections) as f64;
    let time: Time = own.iter().map(|&(_, time)| time).sum();
    // The first thread makes the others, so it is left out.
    let threads = &run.statistics.threads[1..];
    let (own, waiting) = threads.split_at(private);
    let occupied: Time = own.iter().map(|thread| thread.accesses.occupied).sum();
    let passed: u64 = shared.iter().map(|&(done, _)| done).sum();
    let missed: u64 = waiting.iter().map(|thread| thread.accesses.read_misses).sum();
    // Each section has one miss of its own: it reads the counter, which another processor has
    // written.
    let of_spinning = missed.saturating_sub(passed) as f64;
    let spinners = sharing.saturating_sub(1) as f64;
    Ok(Beside {
        section: time.as_picos() as f64 / 1e3 / all,
        bus: occupied.as_picos() as f64 / 1e3 / all,
        misses: if spinners > 0.0 { of_spinning / (passed as f64 * spinners) } else { 0.0 },
    })
}
