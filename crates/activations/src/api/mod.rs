//! The interface: runtimes, and the threads that users spawn, join and park.
//!
//! | file | what it has |
//! | --- | --- |
//! | `runtime` | [`Runtime`](runtime::Runtime): reports, limits, the end |
//! | `builder`, `error` | building a runtime, and the errors of that |
//! | `spawn` | spawning threads: `spawn`, `Builder`, `Runtime::spawn` |
//! | `scope` | threads that borrow |
//! | `join` | the join handle |
//! | `park` | park, unpark, sleep, yield |
//! | `blocking` | announcing a block |
//! | `thread_local` | values of which each thread has its own |
//! | `capabilities` | the support that a runtime has from the kernel |
//!
//! This room imports all rooms but `sync`.

pub(crate) mod blocking;
pub(crate) mod builder;
pub(crate) mod capabilities;
pub(crate) mod error;
pub(crate) mod join;
pub(crate) mod park;
pub(crate) mod runtime;
pub(crate) mod scope;
pub(crate) mod spawn;
pub(crate) mod thread_local;
