//! The state of a runtime, which its workers, its monitor and its threads share.
//!
//! - [`Processors`](crate::processors::Processors): slots, and workers without one. File:
//!   `processors/mod.rs`.
//! - [`Workers`](workers::Workers): records and kernel threads. File: `workers.rs`.
//! - [`ReadyThreads`](crate::queues::ReadyThreads): queues and timers. File: `queues/mod.rs`.
//! - [`Detection`](crate::detection::Detection): stuck workers, upcalls. File: `detection/mod.rs`.
//! - [`FreeFibers`](crate::thread::free_fibers::FreeFibers): stacks. File:
//!   `thread/free_fibers.rs`.
//! - [`LiveThreads`](crate::stats::live_threads::LiveThreads): the end. File:
//!   `stats/live_threads.rs`.
//!
//! `state.rs` puts the parts together, and ends the runtime. `wake.rs` has the steps that need
//! several parts: making a thread ready, and waking a worker for it.
//!
//! This room imports `processors`, `detection`, `queues`, `stats` and `thread`.

pub(crate) mod state;
pub(crate) mod wake;
pub(crate) mod workers;
