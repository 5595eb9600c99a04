//! The machine's processors, free to all.

use std::vec;
use std::vec::Vec;

use core::cell::Cell;

use crate::topology::{PinError, Quota};
use stanchion_simulator::inside;

/// Where the calling thread is kept.
static PINNED: inside::Local<Cell<Option<usize>>> = inside::Local::new(|| Cell::new(None));

/// The processor that the calling thread is kept on, which the threads it starts inherit. None outside a run.
pub(super) fn pinned() -> Option<usize> {
    inside::is_running().then(|| PINNED.try_with(Cell::get))??
}

/// The calling thread, which has just begun, inherits that.
pub(super) fn inherit(pinned: Option<usize>) {
    if pinned.is_some() {
        PINNED.with(|place| place.set(pinned));
    }
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
#[derive(Debug)]
pub(crate) struct Mask(Option<usize>);

pub(crate) fn pin(cpu: usize) -> Result<Mask, PinError> {
    if cpu >= inside::processors() {
        return Err(PinError::NotAllowed { cpu, allowed: processors() });
    }
    Ok(Mask(keep(Some(cpu))))
}

pub(crate) fn restore(before: &Mask) {
    if inside::is_running() {
        keep(before.0);
    }
}

fn keep(on: Option<usize>) -> Option<usize> {
    PINNED.with(|place| place.set(on));
    inside::pin(on)
}
