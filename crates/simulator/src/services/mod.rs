//! The services of the operating system, and the kernel that joins them with the scheduler and the
//! memory.
//!
//! | file | holds |
//! | --- | --- |
//! | `allocator.rs` | how processors change hands, and how events become upcalls |
//! | `kernel.rs` | [`Kernel`]: the state of a run; threads that become ready, and that leave |
//! | `spaces.rs`, `shares.rs` | the address spaces; how many processors each has |
//! | `gangs.rs` | the slots of gangs |
//! | `barriers.rs` | barriers that interrupt other processors |
//! | `delays.rs` | threads that stop for a while, anywhere |
//! | `shared_memory.rs` | `SharedMemory`: what an access takes, and the threads that it wakes |
//! | `jitter.rs` | what makes the times of accesses differ |
//!
//! Imports go downward in this table. Nothing here runs a thread or knows the coroutines:
//! [`os`](crate::os) has the calls of the program, and the [world](crate::world) runs it.

mod allocator;
mod barriers;
mod delays;
mod gangs;
mod jitter;
mod kernel;
mod shared_memory;
mod shares;
mod spaces;

pub(crate) use delays::Delays;
pub use gangs::SLOTS;
pub(crate) use kernel::{Kernel, Limits};
pub(crate) use spaces::{Handler, NewActivation};
pub use spaces::{Next, Space, Upcall};
