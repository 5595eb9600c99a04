//! The scheduler: which thread runs on which processor, and what happens next.
//!
//! | file | holds |
//! | --- | --- |
//! | `dispatch.rs` | [`Scheduler`]: how a thread gets a processor and loses it, slices, sleep |
//! | `sleepers.rs` | the threads that sleep on words, and the marks of watches |
//! | `processor.rs` | a processor: its thread, its slice, the services with a right to it |
//! | `threads.rs` | the threads by number, and the record of what they did |
//! | `event.rs` | the events to come |
//! | `thread.rs` | a thread: its state, its wait, its requests |
//!
//! Imports go downward in this table. Nothing here switches threads, and nothing here knows the
//! services of the operating system. Gangs and address spaces leave their decisions in fields:
//! `owner`, `called` and `slot` of a processor, `entry` and `space` of a thread. Where such a
//! decision is needed in the middle of an operation, the operation is in two parts here, and the
//! [kernel](crate::services) joins them: [`Scheduler::leave`], then the choice of the next thread.

mod dispatch;
mod event;
mod processor;
mod sleepers;
mod thread;
mod threads;

pub(crate) use dispatch::Scheduler;
pub(crate) use event::What;
pub(crate) use processor::ORDINARY;
pub use thread::ThreadId;
pub(crate) use thread::{Computation, Outcome, Status, Thread, Wait};
pub(crate) use threads::Threads;
