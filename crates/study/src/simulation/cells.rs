//! Simulates many runs, as many at a time as this computer has processors.
//!
//! Runs are independent, so the number of runs at a time changes only the total duration.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use stanchion_machine::topology;
use stanchion_simulator::{Failure, Machine};

use super::super::context::{Context, Stop};
use super::program::failed;

/// Calls `run(setting)` for every setting, and returns the results in the order of the settings.
///
/// It begins with the last setting. Most experiments go from few processors to many, and many take
/// longest: a long run that begins last would keep one processor of this computer waiting.
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
            // Relaxed: the counter only gives each setting to one worker. Joining the threads
            // orders the rest.
            let taken = next.fetch_add(1, Ordering::Relaxed);
            let Some(index) = settings.len().checked_sub(taken + 1) else { return };
            let setting = &settings[index];
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
    // Of several failures, the one of the first setting is returned, not the first in time.
    done.into_iter().map(|(_, result)| result).collect()
}
