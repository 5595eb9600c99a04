//! What threads of a pool meet in.

pub(crate) mod count_latch;
pub(crate) mod latch;
pub(crate) mod locked;
