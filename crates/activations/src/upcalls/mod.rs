//! The reactions to upcalls: detecting a stuck worker, and handing its slot to another one.
//!
//! | file | what it does |
//! | --- | --- |
//! | `look` | looks at the owner of a slot, and decides whether to take the slot |
//! | `handoff` | takes a slot, and gives it to a worker |
//! | `lost_time` | counts the processor time that is lost until then |
//! | `monitor` | the loop of the kernel thread that looks when no worker would |
//!
//! This room imports `runtime` and the rooms below it.

pub(crate) mod handoff;
pub(crate) mod look;
pub(crate) mod lost_time;
pub(crate) mod monitor;
