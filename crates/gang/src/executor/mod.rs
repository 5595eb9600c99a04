//! The executor: its threads, its timer, and the state that they share.
//!
//! | file | holds |
//! | --- | --- |
//! | `launch.rs` | how a gang gets processors and threads |
//! | `threads.rs` | the threads that run members |
//! | `timer.rs` | the thread that ends quanta |
//! | `gang_executor.rs` | [`GangExecutor`]: the handle of an executor |
//! | `core.rs` | [`Core`]: the scheduler, and the state under the lock |
//! | `context.rs` | [`MemberContext`]: what a thread knows while it runs a member |
//! | `mailbox.rs` | the commands to a thread |
//! | `settings.rs` | the choices of the builder |
//!
//! Imports go downward in this table, but for the three types that refer to each other: a context
//! has a handle of its executor, which has the core, which knows the commands for idle threads.
//! Nothing here knows what a gang's closure is, nor the [`Member`](crate::Member) that it gets.

mod context;
mod core;
mod gang_executor;
mod launch;
mod mailbox;
mod settings;
mod threads;
mod timer;

pub(crate) use context::{MemberContext, SpawnedGang};
pub use gang_executor::GangExecutor;
pub(crate) use settings::Settings;
