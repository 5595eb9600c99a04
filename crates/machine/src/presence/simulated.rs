//! Presence, exactly: the scheduler knows which threads are on a processor.
//!
//! Every virtual thread is seen from its start to its end, registered or not. A thread that has
//! been woken and has no processor yet is seen as on the real machine: [`of`] returns that it is
//! blocked, because no switch has happened, and [`examine`] returns that it could run.

use crate::presence::{Presence, Refused};
use stanchion_simulator::inside;

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
    crate::thread::index().map(|index| Ticket { index }).ok_or(Refused::NoIndex)
}

pub(crate) fn unregister(_ticket: &Ticket) {}

pub(crate) fn of(index: usize) -> Presence {
    match inside::presence(index) {
        inside::Presence::Running => Presence::Running,
        inside::Presence::Preempted => Presence::Preempted,
        inside::Presence::Blocked | inside::Presence::Woken => Presence::Blocked,
        inside::Presence::Ended => Presence::Unknown,
    }
}

pub(crate) fn since(index: usize) -> Option<u64> {
    inside::switched(index)
}

pub(crate) fn runs(index: usize) -> Option<bool> {
    of(index).runs()
}

pub(crate) fn examine(index: usize) -> Presence {
    match inside::presence(index) {
        inside::Presence::Woken => Presence::Preempted,
        _ => of(index),
    }
}

pub(crate) fn decline(_more: bool) {}

pub(crate) fn status() -> Result<(), Refused> {
    Ok(())
}

/// A thread that was moved to another processor.
#[derive(Debug)]
pub(crate) struct Pulled {
    /// The index of the thread.
    index: usize,
    /// The processor to which it was pinned before, if any.
    before: Option<usize>,
}

pub(crate) fn pull(index: usize) -> Option<Pulled> {
    inside::pull(index).map(|before| Pulled { index, before })
}

pub(crate) fn put_back(pulled: &Pulled) {
    if inside::is_running() {
        inside::put_back(pulled.index, pulled.before);
    }
}
