//! The pseudo-scheduler on Linux: its thread, its members, the handler that stops them.

mod member;
mod scheduler;
mod signal;

pub(crate) use self::{member::Member, scheduler::Scheduler};
