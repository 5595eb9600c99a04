//! Michael, Scott: Relative performance of preemption-safe locking and non-blocking synchronization on multiprogrammed shared-memory
//! multiprocessors, 1997.
//!
//! ```text
//! rows, programs ──┬─ real (this computer, its programs stopped by a pseudo-scheduler; peers) ──┐
//!                  └─ simulated (Challenge) ────────────────────────────────────────────────────┴─▶ grid ─▶ fig1 … fig4, applications (fig5 … fig7)
//! ```
//!
//! [`levels`] stands beside the figures: what a multiprogramming level costs here, by the processor time that the threads had.
//!
//! [`grid`] is what was measured: every structure, every number of processors, every multiprogramming level. The rules by which the figures are
//! judged stand in their files.

pub(crate) mod applications;
pub(crate) mod fig1;
pub(crate) mod fig2;
pub(crate) mod fig3;
pub(crate) mod fig4;
mod grid;
mod judge;
pub(crate) mod levels;
mod peers;
mod real;
mod simulated;

/// The row all others are divided by: the preemption-safe single lock. The same in every figure.
const BASE: usize = real::BASE;
