//! Futures on a pool: each wake-up is a task that polls.
//!
//! Why not a pool of their own: programs that compute and wait would have two, which fight for the processors. Why no reactor and no timers: they are
//! the business of others, who only need a waker. Why `join` beside `await`: whoever has called for a value on a plain thread is no executor.
//!
//! | file | what |
//! | --- | --- |
//! | `future/shared.rs` | the word that says who may touch what |
//! | `future/task.rs` | the future, how it is run, dropped, and told of |
//! | `future/held.rs` | what waits, so that the pool can drop it when it ends |
//! | `ending.rs` | why a wake-up that comes after the end leaves nothing behind |
//!
//! # Why there are no futures that borrow
//!
//! A scope waits for its tasks, but what a future leaves behind is owned by its wakers as well, and by its handle. Either may be forgotten, or kept
//! by another thread beyond the scope's end.
//!
//! Source: the handle is tokio's; what becomes of a panic is rayon's.

mod handle;
pub(crate) mod state;
mod task;

pub use handle::JoinHandle;
pub(crate) use handle::spawn;
