//! The pseudo-scheduler: its thread, its members, the handler that stops them. Linux; elsewhere
//! level 1 only.

#[cfg(all(target_os = "linux", not(miri)))]
mod member;
#[cfg(all(target_os = "linux", not(miri)))]
mod scheduler;
#[cfg(all(target_os = "linux", not(miri)))]
mod signal;

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use self::{
    member::{Member, give_way, is_member},
    scheduler::Scheduler,
};

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::{Member, Scheduler, give_way, is_member};
