//! Recorded waits put together, and what each policy would have cost on them: what tables 1 and 2
//! and `stanchion advise` judge.

pub mod judge;
pub mod pool;
