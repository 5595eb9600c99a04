//! Threads that others interrupt and prefer. Linux of 64 bits, where [`park`](super::park) is the
//! futex, which a handler may use; refused elsewhere.

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod deferral;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod place;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod priority;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod stack;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(crate) use self::{
    deferral::{defer, undefer},
    place::{Allowed, Place, Undisturbed, allow, can_interrupt, still_interrupts, undisturbed},
    priority::{can_prefer, prefer},
};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
#[path = "../../control_elsewhere.rs"]
mod elsewhere;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
pub(crate) use elsewhere::{
    Allowed, Place, Undisturbed, allow, can_interrupt, can_prefer, defer, prefer, still_interrupts,
    undefer, undisturbed,
};
