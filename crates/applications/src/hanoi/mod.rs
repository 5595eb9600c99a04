//! Hanoi: the towers of the monks on five pegs, moved by many threads.
//!
//! One of the programs that Karlin, Li, Manasse and Owicki used to compare strategies of spinning,
//! by their lock-waiting times. The paper says of it:
//!
//! > The program uses five pegs and 64 disks of different sizes. At the start, all 64 disks are on
//! > the first peg, with larger disks lying below smaller ones. At the end, all 64 disks are on the
//! > last peg, in the same arrangement. Disks are moved from peg to peg, but a larger disk is never
//! > placed atop a smaller one. A large number of threads are used in the program, and there is
//! > frequent synchronization.
//!
//! and that each thread has a fixed task, that it has 207 locks, most of them for the display, and
//! that most waits are short. The paper does not say how it moves the disks in parallel. That part
//! is an addition of this crate:
//!
//! | part | content |
//! | --- | --- |
//! | [`moves_needed`], [`closed_form`] | the number of moves that there must be |
//! | `plan` | the order of moves: which one waits for which |
//! | `board` | pegs, disks and display, 139 locks |
//! | `post` | the wait of a thread for its turn, a lock and a word each |
//!
//! A run makes neither more nor fewer moves than that. In the plan, the steps on each peg keep the
//! order of the schedule, and disks are carried at the same time.
//!
//! Pegs, disks, rows and threads are counted from 0; disk 0 is the smallest.
//!
//! Source: A. Karlin, K. Li, M. Manasse, S. Owicki, *Empirical studies of competitive spinning for
//! a shared-memory multiprocessor*, 1991, sections 3 and 5.

mod board;
mod options;
mod outcome;
mod plan;
mod play;
mod post;
mod schedule;

pub use crate::crew::MAX_THREADS;
pub use board::Scene;
pub use options::{DISKS, MAX_MOVES, Options, PEGS, Refused};
pub use outcome::{Fault, Run, Share};
pub use play::{run, run_with};
pub use schedule::{Disk, Move, closed_form, moves_needed};
