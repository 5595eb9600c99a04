//! The executor: its threads, its timer, and the state that they share.
//!
//! | file | holds |
//! | --- | --- |
//! | `core.rs` | the executor's handle and its shared state |
//! | `mailbox.rs` | the commands to a thread |
//! | `context.rs` | the context of a thread that runs a member |
//! | `threads.rs` | the threads |
//! | `timer.rs` | the thread that ends quanta |

mod context;
mod core;
mod mailbox;
mod threads;
mod timer;

pub use self::core::GangExecutor;
pub(crate) use self::core::{Core, Settings};
pub(crate) use context::{BarrierWait, MemberContext};
