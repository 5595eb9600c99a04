//! Many runs, as many at a time as this computer has processors.
//!
//! Runs know nothing of one another, so how many are on their way at a time changes nothing but how
//! long they take.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use machine::topology;
use stanchion_simulator::{Failure, Machine};

use super::super::context::{Context, Stop};
use super::program::failed;

/// `run(setting)` for every setting, in order.
pub fn cells<S: Sync, T: Send>(
    context: &Context,
    machine: &Machine,
    settings: &[S],
    run: impl Fn(&S) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Stop> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T, Stop>)>> = Mutex::new(Vec::new());
    let worker = || {
        loop {
            // Relaxed: only who takes which; joining the threads orders the rest.
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(setting) = settings.get(index) else { return };
            let result = run(setting).map_err(|failure| failed(machine, &failure));
            let result = context.step().and(result);
            let stops = result.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            if stops {
                // Relaxed: as above.
                next.store(settings.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..topology::parallelism() {
            scope.spawn(worker);
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|&(index, _)| index);
    // Of several failures the first by order, whoever came first.
    done.into_iter().map(|(_, result)| result).collect()
}
