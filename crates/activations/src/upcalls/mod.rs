pub(crate) mod handoff;
pub(crate) mod lost_time;
pub(crate) mod monitor;
