//! Systems without switch records.

use crate::presence::Presence;
use crate::presence::Refused;
use crate::presence::switches::Switch;
use core::convert::Infallible;

/// Cannot be had.
#[derive(Debug)]
pub(crate) struct Mapped(Infallible);

/// Cannot be had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View(Infallible);

impl Mapped {
    pub(crate) fn of_this_thread() -> Result<Self, Refused> {
        Err(Refused::Unsupported { os: std::env::consts::OS })
    }

    pub(crate) fn bare(_descriptors: u32) -> Result<Self, i32> {
        /// Unix systems' number for a call that does not exist.
        const ENOSYS: i32 = 38;
        Err(ENOSYS)
    }

    pub(crate) fn view(&self) -> Option<View> {
        match self.0 {}
    }
}

impl View {
    pub(crate) fn count(self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn switch(self, _number: u64) -> Option<Switch> {
        match self.0 {}
    }

    pub(crate) fn time(self, _number: u64) -> Option<u64> {
        match self.0 {}
    }

    pub(crate) fn presence(self) -> Presence {
        match self.0 {}
    }
}
