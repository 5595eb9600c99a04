//! Futures on a pool: each wake-up is a task that polls.
//!
//! Why not a pool of their own: programs that compute and wait would have two pools, which compete
//! for the processors. Why no reactor and no timers: other crates have those, and only need a
//! waker. Why `join` beside `await`: a plain thread that wants the output is no executor.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `handle.rs` | the handle, by which a program waits for a future |
//! | `task.rs` | the future itself: how it is polled, finished and dropped |
//! | `state.rs` | the word that says which thread may touch the future |
//! | `workers/waiting_futures.rs` | futures that wait, which the pool drops when it ends |
//! | `shutdown/drain.rs` | why a wake-up that comes after the end leaves nothing behind |
//!
//! # Why there are no futures that borrow
//!
//! A scope waits for its tasks. But a future is also owned by its wakers and by its handle. Either
//! may be forgotten, or kept by another thread beyond the scope's end.
//!
//! Source: the handle is tokio's. The treatment of a panic is rayon's.

mod handle;
pub(crate) mod state;
mod task;

pub use handle::JoinHandle;
pub(crate) use handle::spawn;
