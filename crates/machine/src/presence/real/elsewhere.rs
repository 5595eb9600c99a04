//! Systems that do not tell.

use crate::presence::Presence;
use crate::presence::Refused;
use core::convert::Infallible;

/// Cannot be had.
#[derive(Debug)]
pub(crate) struct Ticket(Infallible);

impl Ticket {
    pub(crate) fn index(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        match self.0 {}
    }
}

pub(crate) fn register() -> Result<Ticket, Refused> {
    Err(Refused::Unsupported { os: std::env::consts::OS })
}

pub(crate) fn unregister(ticket: &Ticket) {
    match ticket.0 {}
}

#[inline]
pub(crate) fn of(_index: usize) -> Presence {
    Presence::Unknown
}

pub(crate) fn since(_index: usize) -> Option<u64> {
    None
}

pub(crate) fn runs(_index: usize) -> Option<bool> {
    None
}

pub(crate) fn examine(_index: usize) -> Presence {
    Presence::Unknown
}

pub(crate) fn decline(_more: bool) {}

pub(crate) fn status() -> Result<(), Refused> {
    Err(Refused::Unsupported { os: std::env::consts::OS })
}

/// Cannot be had.
#[derive(Debug)]
pub(crate) struct Pulled(Infallible);

pub(crate) fn pull(_index: usize) -> Option<Pulled> {
    None
}

pub(crate) fn put_back(pulled: &Pulled) {
    match pulled.0 {}
}
