//! Latches and locks in which threads of a pool meet.

pub(crate) mod count_latch;
pub(crate) mod latch;
pub(crate) mod locked;

pub(crate) use self::count_latch::CountLatch;
pub(crate) use self::latch::Latch;
pub(crate) use self::locked::Locked;
