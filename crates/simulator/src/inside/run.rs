//! The run itself: whether there is one, its number, its randomness.

use crate::arena;
use crate::world::{self, outside, with};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Returns whether a virtual thread runs on this thread of the operating system.
#[inline]
#[must_use]
pub fn is_running() -> bool {
    world::is_running()
}

/// A number of the run that no other run of this process has.
#[must_use]
pub fn run_number() -> u64 {
    with(|world, _| world.kernel.number).unwrap_or_else(|| outside("the run's number"))
}

/// A number from the seed: another one at each call, the same ones in each run.
#[must_use]
pub fn entropy() -> u64 {
    with(|world, _| world.kernel.scheduler.random.next())
        .unwrap_or_else(|| outside("machine::hint::entropy"))
}

/// A copy of `text` for the rest of the process, which is what a `&'static str` says and a static
/// of the run does not keep. One for each text.
#[must_use]
pub fn keep(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // Not of the run's memory, which it would keep too.
    let _outside = arena::outside();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.get(text).copied().unwrap_or_else(|| {
        let copy: &'static str = Box::leak(text.into());
        kept.insert(copy);
        copy
    })
}

/// The panic of a call that would leave the simulation.
///
/// # Panics
///
/// Always.
#[cold]
#[track_caller]
pub fn forbidden(call: &str) -> ! {
    panic!(
        "{call} would reach the real machine from inside a simulation, which has none: \
         use what `machine` has for it, or keep it out of the simulated code"
    )
}
