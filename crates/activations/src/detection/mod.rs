pub(crate) mod handoff_delay;
pub(crate) mod observed;
pub(crate) mod watch_state;
