//! Presence in a model: a thread is on a processor or not, by [`choice`](crate::choice). An
//! algorithm must be right either way.

use crate::presence::{Presence, Refused};

/// The registration of one thread.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// The thread's index.
    index: usize,
}

impl Ticket {
    pub(crate) fn refused(&self) -> Option<&Refused> {
        None
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

pub(crate) fn register() -> Result<Ticket, Refused> {
    // Every model thread has an index.
    Ok(Ticket { index: crate::thread::index().unwrap_or(0) })
}

pub(crate) fn unregister(_ticket: &Ticket) {}

pub(crate) fn of(_index: usize) -> Presence {
    if crate::choice() { Presence::Preempted } else { Presence::Running }
}

/// Returns nothing: no model has a meaningful clock.
pub(crate) fn since(_index: usize) -> Option<u64> {
    None
}

pub(crate) fn runs(_index: usize) -> Option<bool> {
    Some(!crate::choice())
}

pub(crate) fn examine(index: usize) -> Presence {
    of(index)
}

pub(crate) fn decline(_more: bool) {}

pub(crate) fn status() -> Result<(), Refused> {
    Ok(())
}

/// A thread that was moved. It has no state, because a model has no notion of where a thread runs.
#[derive(Debug)]
pub(crate) struct Pulled(());

pub(crate) fn pull(_index: usize) -> Option<Pulled> {
    Some(Pulled(()))
}

pub(crate) fn put_back(_pulled: &Pulled) {}
