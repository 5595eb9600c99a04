//! The scheduler: threads, processors, and the events to come.

pub(crate) mod dispatch;
pub(crate) mod event;
pub(crate) mod thread;
