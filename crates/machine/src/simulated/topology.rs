//! The simulated machine's processors, all of which a run may use.

use std::vec;
use std::vec::Vec;

use crate::topology::{PinError, Quota};
use stanchion_simulator::inside;

/// Returns the processor to which the calling thread is pinned, if any. The threads that it starts
/// inherit that. `None` outside a run.
pub(super) fn pinned() -> Option<usize> {
    inside::is_running().then(inside::pinned)?
}

pub(crate) fn processors() -> Vec<usize> {
    pinned().map_or_else(|| (0..inside::processors()).collect(), |cpu| vec![cpu])
}

pub(crate) fn current() -> Option<usize> {
    Some(inside::processor())
}

pub(crate) fn quota() -> Option<Quota> {
    None
}

/// The processor to which a thread was pinned before, if any.
#[derive(Clone, Debug)]
pub(crate) struct Mask(Option<usize>);

pub(crate) fn pin(cpu: usize) -> Result<Mask, PinError> {
    if cpu >= inside::processors() {
        return Err(PinError::NotAllowed { cpu, allowed: processors() });
    }
    Ok(Mask(inside::pin(Some(cpu))))
}

pub(crate) fn unpin(before: &Mask) {
    restore(before);
}

/// Returns where the thread may run now, also if it is pinned: a run's pins belong to the
/// experiment.
pub(crate) fn affinity() -> Option<Mask> {
    Some(Mask(pinned()))
}

pub(crate) fn processors_of(mask: &Mask) -> Vec<usize> {
    mask.0.map_or_else(|| (0..inside::processors()).collect(), |cpu| vec![cpu])
}

pub(crate) fn restore(before: &Mask) {
    if inside::is_running() {
        inside::pin(before.0);
    }
}
