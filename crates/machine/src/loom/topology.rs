//! A model's processors: there are two, and every thread may use both.

use std::vec;
use std::vec::Vec;

use crate::topology::{PinError, Quota};

pub(crate) fn processors() -> Vec<usize> {
    vec![0, 1]
}

/// Returns nothing, because no algorithm may depend on it.
pub(crate) fn current() -> Option<usize> {
    None
}

pub(crate) fn quota() -> Option<Quota> {
    None
}

/// The processors on which a thread was allowed to run: all of them.
#[derive(Clone, Debug)]
pub(crate) struct Mask(());

pub(crate) fn pin(cpu: usize) -> Result<Mask, PinError> {
    let allowed = processors();
    if allowed.contains(&cpu) { Ok(Mask(())) } else { Err(PinError::NotAllowed { cpu, allowed }) }
}

pub(crate) fn restore(_before: &Mask) {}

pub(crate) fn unpin(_before: &Mask) {}

pub(crate) fn affinity() -> Option<Mask> {
    None
}

pub(crate) fn processors_of(_mask: &Mask) -> Vec<usize> {
    processors()
}
