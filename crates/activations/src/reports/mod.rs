pub(crate) mod held_up;
pub(crate) mod metrics;
pub(crate) mod stall;
