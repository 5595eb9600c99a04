//! Karlin, Li, Manasse and Owicki 1991: three programs, and the strategies of their locks.

pub mod entrants;
pub mod programs;
