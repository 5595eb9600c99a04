//! Control of threads, for machines where no thread controls another.

use crate::control::{Interrupted, Preference, Refused};
use std::sync::Arc;

const OS: &str = if cfg!(stanchion_loom) {
    "loom"
} else if cfg!(stanchion_simulated) {
    "a simulation"
} else {
    std::env::consts::OS
};

/// The consent that no thread can give here.
#[derive(Debug)]
pub(crate) enum Allowed {}

/// A place that is always empty.
#[derive(Debug, Default)]
pub(crate) struct Place;

impl Place {
    pub(crate) fn interrupt(&self) -> bool {
        false
    }

    pub(crate) fn prefer(&self, _preference: Preference) -> bool {
        false
    }
}

pub(crate) fn allow<I: Interrupted>(_interrupted: Arc<I>) -> Result<Allowed, Refused> {
    Err(Refused::Unsupported { os: OS })
}

pub(crate) fn can_interrupt() -> Result<(), Refused> {
    Err(Refused::Unsupported { os: OS })
}

pub(crate) fn still_interrupts() -> Result<(), Refused> {
    Err(Refused::Unsupported { os: OS })
}

/// A thread that is never interrupted anyway.
#[derive(Debug)]
pub(crate) struct Undisturbed;

pub(crate) fn undisturbed() -> Undisturbed {
    Undisturbed
}

pub(crate) fn can_prefer(_level: u8) -> Result<(), Refused> {
    Err(Refused::Unsupported { os: OS })
}

pub(crate) fn prefer(_preference: Preference) -> bool {
    false
}

pub(crate) fn defer() {}

pub(crate) fn undefer() {}
