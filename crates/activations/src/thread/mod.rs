//! A thread: its header, its handles, its stack, and how it parks and ends.
//!
//! ```text
//! handle ──► header ── park_state       parked or not, and the token of an unpark
//!   │          │ ───── completion       ended or not, and the thread that joins it
//!   │          │ ───── home             the runtime that it belongs to
//!   │          │ ───── locals           its thread-local values
//!   │          └ ───── fiber            its stack, while it is off its processor
//!   └ reference_count, vtable: `task_cell` for a spawned thread, `kernel_thread` for another one
//! ```
//!
//! - `header`. What it has: the part that all threads have, and the vtable of the rest.
//! - `handle`. What it has: [`Thread`](handle::Thread), one word that points to a header.
//! - `task_cell`. What it has: a spawned thread: header, closure and result in one allocation.
//! - `kernel_thread`. What it has: the handle of a kernel thread that belongs to no runtime.
//! - `notice`. What it has: the threads that are told of an end: the joiner, and the scope.
//! - `scheduler`. What it has: the trait through which a thread reaches its runtime.
//! - `attributes`, `id`, `priority`, `kind`, `process`, `panics`. What it has: small types.
//! - `fiber`, `stacks`, `free_fibers`. What it has: a stack with a loop on it; where stacks come
//!   from; free fibers.
//!
//! This room knows nothing of workers, processors and queues. It imports only `machine` and the
//! mutex of `competitive`.

pub(crate) mod attributes;
pub(crate) mod completion;
pub(crate) mod fiber;
pub(crate) mod free_fibers;
pub(crate) mod handle;
pub(crate) mod header;
pub(crate) mod home;
pub(crate) mod id;
pub(crate) mod kernel_thread;
pub(crate) mod kind;
pub(crate) mod locals;
pub(crate) mod notice;
pub(crate) mod panics;
pub(crate) mod park_state;
pub(crate) mod priority;
pub(crate) mod process;
pub(crate) mod reference_count;
pub(crate) mod scheduler;
pub(crate) mod stacks;
pub(crate) mod task_cell;
