//! What the threads of a pool share, whatever its strategy.

pub(crate) mod compensation;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod job;
pub(crate) mod join;
pub(crate) mod monitor;
pub(crate) mod pool_state;
pub(crate) mod run;
pub(crate) mod signals;
pub(crate) mod wait;
pub(crate) mod waiting_futures;
pub(crate) mod worker;
pub(crate) mod worker_info;
