//! Hanoi: the towers of the monks on five pegs, moved by many threads.
//!
//! One of the programs by whose lock-waiting times Karlin, Li, Manasse and Owicki compared
//! strategies of spinning. The paper says of it:
//!
//! > The program uses five pegs and 64 disks of different sizes. At the start, all 64 disks are on
//! the first peg, with larger disks lying > below smaller ones. At the end, all 64 disks are on the
//! last peg, in the same arrangement. Disks are moved from peg to peg, but a > larger disk is never
//! placed atop a smaller one. A large number of threads are used in the program, and there is
//! frequent > synchronization.
//!
//! and that each thread has a fixed task, that it has 207 locks, most of them for the display, and
//! that most waits are short. How it moves the disks in parallel the paper does not say; that is
//! ours:
//!
//! | part | what it is |
//! | --- | --- |
//! | [`moves_needed`], [`closed_form`] | how many moves there must be; the run makes neither more nor fewer |
//! | `plan` | which move waits for which: the steps on each peg keep the order of the schedule, and disks are carried at the same time |
//! | `board` | pegs, disks and display, 139 locks |
//! | `post` | where a thread waits for its turn, a lock and a word each |
//!
//! Pegs, disks, rows and threads are counted from 0; disk 0 is the smallest.
//!
//! Source: A. Karlin, K. Li, M. Manasse, S. Owicki, *Empirical studies of competitive spinning for
//! a shared-memory multiprocessor*, 1991, sections 3 and 5.

mod board;
mod outcome;
mod plan;
mod play;
mod post;
mod schedule;

pub use crate::crew::MAX_THREADS;
pub use board::Scene;
pub use outcome::{DISKS, Fault, MAX_MOVES, Options, PEGS, Refused, Run, Share};
pub use play::{run, run_with};
pub use schedule::{Disk, Move, closed_form, moves_needed};
