//! The reports of a runtime: what it has done, and which threads are stuck.
//!
//! | file | the report |
//! | --- | --- |
//! | `metrics` | counts since the runtime was made |
//! | `stall` | threads that wait, while no thread of the runtime could wake them |
//! | `held_up` | threads that are held up by another thread on their kernel thread |
//!
//! This room imports `runtime` and the rooms below it. It changes nothing.

pub(crate) mod held_up;
pub(crate) mod metrics;
pub(crate) mod stall;
