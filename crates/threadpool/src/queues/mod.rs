//! The places outside of the strategy where work waits.
//!
//! | file | what waits there |
//! | --- | --- |
//! | `fork_stack.rs` | the second halves of a worker's forks |
//! | `fifo.rs` | closures of `spawn_fifo`, in their order of creation |
//! | `scope_tasks.rs` | tasks of scopes if their waiters run no other tasks |

pub(crate) mod fifo;
pub(crate) mod fork_stack;
pub(crate) mod scope_tasks;

pub(crate) use self::fifo::Fifo;
pub(crate) use self::fork_stack::ForkStack;
pub(crate) use self::scope_tasks::ScopeTasks;
