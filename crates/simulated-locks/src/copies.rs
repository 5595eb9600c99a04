//! Processors that run a critical section on copies of their own, beside others that share one
//! copy: how section 5.1 of the paper finds what a section and what spinning ask of the bus.
//!
//! Nobody waits for a lock among those with their own copies, so all that slows them is the bus.

use std::cell::Cell;

use lock_api::RawMutex;
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::shared::Shared;
use stanchion_study::simulation::{simulation, together};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    /// Processors with a lock and a counter each (the paper's P).
    pub private: usize,
    /// Processors that share a lock and a counter (the paper's Q); one of them holds it, or is
    /// about to, and the others wait.
    pub sharing: usize,
    /// How often each of the first runs its section.
    pub sections: u64,
    /// Nanoseconds of one turn of a loop; apart from the machine, whose scale an experiment may
    /// change to change the locks' delays only.
    pub turn: f64,
    /// The seed of the run's chances.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// Nanoseconds for one lock, section and unlock on a private copy.
    pub section: f64,
    /// Nanoseconds for which these occupied the bus, each time.
    pub bus: f64,
    /// Reads that missed, for each section of the sharing ones and each processor of them that
    /// waited; 0 if nobody did.
    pub misses: f64,
}

/// Runs it on `machine`, with locks of type `R`.
pub fn run<R: RawMutex + 'static>(machine: &Machine, copies: &Copies) -> Result<Beside, Failure> {
    let Copies { private, sharing, sections, turn, seed } = *copies;
    let run = together(&simulation(machine, seed), private + sharing, turn, move || {
        let new = || lock_api::Mutex::<R, Shared>::new(Shared::default());
        let locks: Vec<_> = (0..=private).map(|_| new()).collect();
        // Of no cost: it is the experiment's, not the program's.
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
    // The first thread is the one that makes the others.
    let threads = &run.statistics.threads[1..];
    let (own, waiting) = threads.split_at(private);
    let occupied: Time = own.iter().map(|thread| thread.accesses.occupied).sum();
    let passed: u64 = shared.iter().map(|&(done, _)| done).sum();
    let missed: u64 = waiting.iter().map(|thread| thread.accesses.read_misses).sum();
    // Each section reads the counter that another has written.
    let of_spinning = missed.saturating_sub(passed) as f64;
    let spinners = sharing.saturating_sub(1) as f64;
    Ok(Beside {
        section: time.as_picos() as f64 / 1e3 / all,
        bus: occupied.as_picos() as f64 / 1e3 / all,
        misses: if spinners > 0.0 { of_spinning / (passed as f64 * spinners) } else { 0.0 },
    })
}
