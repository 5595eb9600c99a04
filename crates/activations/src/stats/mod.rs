//! Counts and records of what a runtime does: written everywhere, read by the reports.
//!
//! | file | what it has |
//! | --- | --- |
//! | `histogram` | durations, counted by powers of two |
//! | `upcalls` | the four upcalls, and how often each has come |
//! | `live_threads` | threads created and ended, and so whether the runtime has ended |
//! | `trace` | events for a trace viewer |
//!
//! This room imports only `thread`.

pub(crate) mod histogram;
pub(crate) mod live_threads;
pub(crate) mod trace;
pub(crate) mod upcalls;
