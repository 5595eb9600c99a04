//! The machine's processors, free to all.

use std::vec;
use std::vec::Vec;

use crate::topology::{PinError, Quota};
use stanchion_simulator::inside;

/// The processor that the calling thread is kept on, which the threads it starts inherit. None
/// outside a run.
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

/// Where a thread was kept before.
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

/// As the thread is kept now: what a run pins is the experiment's.
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
