//! Where work waits that is not in the strategy.

pub(crate) mod fifo;
pub(crate) mod fork_stack;
pub(crate) mod scope_tasks;
