//! Karlin, Li, Manasse and Owicki 1991: three programs, and the strategies that they are run with.

pub mod entrants;
pub mod programs;
