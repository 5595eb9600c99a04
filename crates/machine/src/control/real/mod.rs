//! Threads that others interrupt and prefer. Linux of 64 bits, where [`park`](crate::park) is the
//! futex, which a handler may use; refused elsewhere.

mod deferral;
mod place;
mod priority;
mod record;
mod stack;

pub(crate) use self::{
    deferral::{defer, undefer},
    place::{Allowed, Place, Undisturbed, allow, can_interrupt, still_interrupts, undisturbed},
    priority::{can_prefer, prefer},
};
