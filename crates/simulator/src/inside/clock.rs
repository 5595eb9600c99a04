//! The code's clock, and lengths on it.

use crate::Time;
use crate::world::{outside, synchronize, with};

/// The reading of the code's clock when a run begins, in nanoseconds: not 0, which some code takes
/// for "never".
const EPOCH_NS: u64 = 1_000_000_000;

/// Lets all that is earlier happen first, for a call that takes no time: see `Threads::glance`.
pub(super) fn glance() {
    with(|world, id| world.kernel.scheduler.threads.glance(id));
    synchronize();
}

/// The code's clock, in nanoseconds; see [`Machine::scale`](crate::Machine::scale). Free, unless it
/// is read again and again with nothing in between.
#[must_use]
pub fn now() -> u64 {
    if with(|world, id| world.kernel.scheduler.threads.glance(id)) == Some(true) {
        synchronize();
    }
    with(|world, id| reading(world.kernel.thread(id).time, world.kernel.machine.scale))
        .unwrap_or_else(|| outside("the clock"))
}

/// Returns the reading of the code's clock at `time`.
pub(super) fn reading(time: Time, scale: f64) -> u64 {
    EPOCH_NS.saturating_add(unscaled(time, scale))
}

/// A length on the code's clock, on the machine's.
pub(super) fn scaled(nanos: u64) -> Time {
    let scale = with(|world, _| world.kernel.machine.scale).unwrap_or_else(|| outside("the clock"));
    scaled_by(nanos, scale)
}

fn scaled_by(nanos: u64, scale: f64) -> Time {
    if nanos == u64::MAX {
        return Time::NEVER;
    }
    // Rounded up: a wait is never shorter than it should be.
    let picos = (nanos as f64 * 1e3 * scale).ceil();
    if picos >= u64::MAX as f64 { Time::NEVER } else { Time::picos(picos as u64) }
}

/// Converts a length on the machine's clock to the code's: the most that has passed by then. It is
/// not just a division: its rounding would make a moment that has come seem to lie ahead.
pub(super) fn unscaled(time: Time, scale: f64) -> u64 {
    let near = (time.as_picos() as f64 / 1e3 / scale) as u64;
    match near.checked_add(1) {
        Some(next) if scaled_by(next, scale) <= time => next,
        _ => near,
    }
}

/// A moment on the code's clock, on the machine's.
pub(super) fn moment(until: u64) -> Time {
    if until == u64::MAX { Time::NEVER } else { scaled(until.saturating_sub(EPOCH_NS)) }
}

/// Returns the time of the running thread, on the machine's clock: no scale.
///
/// # Panics
///
/// Outside a run.
#[must_use]
pub fn time() -> Time {
    with(|world, id| world.kernel.thread(id).time).unwrap_or_else(|| outside("the clock"))
}
