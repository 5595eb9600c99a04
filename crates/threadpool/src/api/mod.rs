//! The interface that programs call. All other rooms are below this one.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `thread_pool.rs` | `ThreadPool` |
//! | `builder.rs` | `ThreadPoolBuilder` |
//! | `global.rs` | the pool of the process, and the free functions |
//! | `current_thread.rs` | the thread that builds a pool and becomes its worker |
//! pool.

pub(crate) mod builder;
mod current_thread;
pub(crate) mod global;
pub(crate) mod thread_pool;
