//! Machines on which nobody controls another thread.

use crate::control::{Interrupted, Preference, Refused};
use std::sync::Arc;

const OS: &str = if cfg!(stanchion_loom) {
    "loom"
} else if cfg!(stanchion_simulated) {
    "a simulation"
} else {
    std::env::consts::OS
};

/// There is none.
#[derive(Debug)]
pub(crate) enum Allowed {}

/// Nobody is ever there.
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

pub(crate) fn can_prefer(_level: u8) -> Result<(), Refused> {
    Err(Refused::Unsupported { os: OS })
}

pub(crate) fn prefer(_preference: Preference) -> bool {
    false
}

pub(crate) fn defer() {}

pub(crate) fn undefer() {}
