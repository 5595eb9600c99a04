//! Recorded waits put together, and the cost that each policy would have had on them. Tables 1 and
//! 2 and `stanchion advise` judge these.

pub mod judge;
pub mod pool;
mod replay;
