//! What programs call: the pool, its builder, the free functions, and the thread that builds a pool.

pub(crate) mod builder;
mod current_thread;
pub(crate) mod global;
pub(crate) mod thread_pool;
