//! Ready threads under the strategies of section 3, for figures 3.1 to 3.4 and 5.1.
//!
//! ```text
//! rows ──┬─ real (this computer; peers: whole pools beside) ─────┐
//!        └─ simulated (Symmetry A; demands for the model) ───────┴─▶ grid ─┬▶ fig3_1, fig3_2
//!                                                                          ├▶ fig3_3, fig5_1
//!                                                                          └▶ fig3_4
//! ```
//!
//! The program is `null_threads` of the applications, once for each machine. The file of each
//! figure states the rule of its verdict.

pub(super) mod grid;
mod peers;
pub(super) mod real;
pub(super) mod simulated;

/// The rows, the same on every machine: the paper's five first.
pub(super) const SINGLE: usize = 0;
pub(super) const MULTIPLE: usize = 1;
pub(super) const FREE_LIST: usize = 2;
pub(super) const IDLE: usize = 3;
pub(super) const READY: usize = 4;
/// The number of rows that are the paper's.
pub(super) const PAPER: usize = 5;
/// The first of the two hybrids that the paper mentions. The row before it is ours.
pub(super) const CENTRAL_ELSE_LOCAL: usize = 6;
pub(super) const PROBE: usize = 7;

/// The most free blocks that a processor keeps for itself, `T`. Section 3.3: "we can set the
/// threshold T to be equal to P", which was 20. Here it is 20 with any number of processors, so
/// that two cells differ only in that number.
const THRESHOLD: usize = 20;

/// A strategy, and the nanoseconds for one of its threads, by the number of runnable threads.
pub(super) type Curve = (&'static str, Vec<(usize, f64)>);
