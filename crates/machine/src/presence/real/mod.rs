//! Presence by switch records and CPU clocks on Linux; unknown elsewhere.

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod check;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod cpu_clock;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod examine;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod pull;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod refusals;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod slots;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(crate) use self::{
    check::{decline, status},
    examine::examine,
    pull::{Pulled, pull, put_back},
    slots::{Ticket, of, register, runs, since, unregister},
};
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(in crate::presence) use self::{
    refusals::{ring_given_back, unless_refused},
    slots::count,
};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
pub(crate) use elsewhere::{
    Pulled, Ticket, decline, examine, of, pull, put_back, register, runs, since, status, unregister,
};
