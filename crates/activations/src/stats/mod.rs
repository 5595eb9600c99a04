pub(crate) mod histogram;
pub(crate) mod live_threads;
pub(crate) mod trace;
pub(crate) mod upcalls;
