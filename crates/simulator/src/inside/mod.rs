//! The requests of a virtual thread's code to its machine: for authors of a backend.
//!
//! Each function that needs a run panics outside one, naming itself. The exception is [`access`]: a
//! word may be read and written before a run and after it, which costs nothing and is not counted.
//!
//! An access **takes effect when it is issued**: [`access`] returns to a thread that is the
//! earliest of all, and nothing else runs until it calls the simulator again. So the caller does
//! the plain operation right after it, and a run is sequentially consistent.

// | file | holds |
// | --- | --- |
// | `threads.rs` | threads: how they begin and end, and the state of each |
// | `placement.rs` | processors, and the threads that are kept on one |
// | `waiting.rs` | computation and waiting |
// | `access.rs` | accesses, and the names of words |
// | `clock.rs` | the code's clock |
// | `run.rs` | the run itself |
// | `statics.rs` | statics that every run has anew |
//
// Imports go downward in this table.

mod access;
mod clock;
mod placement;
mod run;
mod statics;
mod threads;
mod waiting;

pub use self::access::{
    access, access_after, compare_after, fence, has_membarrier, identity, label, leave_membarrier,
    leaves_membarrier, membarrier, releases_by_exchange,
};
pub use self::clock::{now, time};
pub use self::placement::{pin, pinned, processor, processors, pull, put_back};
pub use self::run::{entropy, forbidden, is_running, keep, run_number};
pub use self::statics::{Global, Local};
pub(crate) use self::threads::spawn_prepared;
pub use self::threads::{Presence, current, has_ended, join, presence, spawn, switched};
pub use self::waiting::{
    Parked, as_measured, call_nanos, hint, hint_nanos, park, pause, sleep, transfer_nanos, wake,
    watch, work, yield_now,
};
pub use crate::memory::Kind;
