//! Pegs, disks and the display, each under a lock of its own.
//!
//! | lock | guards | taken |
//! | --- | --- | --- |
//! | `peg p` | its disks, its steps, the threads that wait for one | to test for a turn, to step |
//! | `disk d` | where it is and how often it was moved | to record a step |
//! | `row r` | the drawing at height r over each peg | after a step, to draw its change |
//! | `column p` | the number of disks that pass peg p | twice for each disk that passes |
//! | `count` | moves made | after each move |
//!
//! Together with one `post` a thread, 64 disks on 5 pegs with 64 threads have 203 locks; the paper
//! counted 207, most of them for the display.
//!
//! # Invariants
//!
//! 1. No thread holds two of these locks: they cannot deadlock, in whatever order they are taken.
//! 2. On a peg the disks get smaller from bottom to top. A step that would break this, or that is
//!    not in the plan, panics.
//! 3. Steps on a peg are made in the order of their numbers ([plan](super::plan)).
//! 4. A row shows the latest step over each peg. Steps are drawn after the peg's lock was released,
//!    and so in any order. So each drawing carries the number of its step, and an earlier one draws
//!    nothing.

use super::options::Options;
use super::schedule::{Disk, Move};
use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use core::time::Duration;
use lock_api::RawMutex;
use stanchion_machine::thread;

/// The data under the lock of a peg.
#[derive(Debug, Default)]
struct Peg {
    /// From bottom to top.
    stack: Vec<Disk>,
    /// The number of steps made on it. Written by the threads that step.
    steps: u64,
    /// Step number and thread.
    waiting: Vec<(u64, usize)>,
}

/// The data under the lock of a disk.
#[derive(Clone, Copy, Debug, Default)]
struct Whereabouts {
    /// Set while the disk is carried.
    held: bool,
    /// The number of its moves.
    moves: u64,
}

/// The drawing at one height over one peg.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// The disk that is drawn, if there is one.
    disk: Option<Disk>,
    /// Steps made on the peg when it was drawn.
    steps: u64,
}

/// The data under the lock of a column.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    /// The number of disks that are above it now.
    above: u64,
    /// The number of times that a disk was carried past.
    passed: u64,
}

/// One of the two steps of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Lift,
    Lower,
}

/// The result of an attempt to make a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It is made; the thread that waits for the next one on this peg, if one does.
    Made(Option<usize>),
    /// It is not yet its turn. The thread that attempted it will be woken.
    TooEarly,
}

/// All of them.
pub(super) struct Board<L> {
    /// The pegs. Written by the threads that step.
    pegs: Vec<Named<L, Peg>>,
    /// The disks. Written by the threads that move them.
    disks: Vec<Named<L, Whereabouts>>,
    /// The rows of the display. Written after a step.
    rows: Vec<Named<L, Vec<Cell>>>,
    /// The columns of the display. Written while a disk is carried past.
    columns: Vec<Named<L, Column>>,
    /// The number of moves made. Written after each move.
    count: Named<L, u64>,
    /// Nanoseconds that a drawing takes.
    draw_ns: u64,
    /// The time that the window system takes for one, in nanoseconds.
    window_ns: u64,
    /// The disks carried past a peg for each call of the window system.
    window_every: u64,
    /// The pace of a simulated machine.
    pace: Pace,
}

/// The contents of the display, read row by row while disks are moved.
///
/// So it is of no single moment: a disk may be seen twice, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// Moves made.
    pub moves: u64,
    /// Moves of the whole run.
    pub of: u64,
    /// For each peg the disks on it, from bottom to top, as far as they are drawn.
    pub pegs: Vec<Vec<Disk>>,
    /// Disks that are being carried.
    pub held: Vec<Disk>,
}

/// The state when all threads have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remains {
    /// The disks on each peg, from bottom to top.
    pub(super) pegs: Vec<Vec<Disk>>,
    /// The disks that are drawn on each peg.
    pub(super) shown: Vec<Vec<Disk>>,
    /// Disks that are still carried.
    pub(super) held: Vec<Disk>,
    /// The number of moves that were counted.
    pub(super) counted: u64,
    /// Moves of the disks, added up.
    pub(super) moved: u64,
    /// Times a disk was carried past a peg, added up.
    pub(super) passed: u64,
    /// The number of disks that are above a column, added up.
    pub(super) above: u64,
}

impl<L: RawMutex> Board<L> {
    /// All disks on peg 0.
    pub(super) fn new(options: &Options, locks: &mut Locksmith<'_, L>) -> Self {
        let &Options { disks, pegs, .. } = options;
        let stack = |peg| if peg == 0 { (0..disks as Disk).rev().collect() } else { Vec::new() };
        let cells = |row: usize| {
            let bottom = Cell { disk: Some((disks - 1 - row) as Disk), steps: 0 };
            (0..pegs).map(|peg| if peg == 0 { bottom } else { Cell::default() }).collect()
        };
        let peg = |peg| Peg { stack: stack(peg), ..Peg::default() };
        Self {
            pegs: (0..pegs)
                .map(|number| locks.lock(format!("peg {number}"), peg(number)))
                .collect(),
            disks: (0..disks)
                .map(|disk| locks.lock(format!("disk {disk}"), Whereabouts::default()))
                .collect(),
            rows: (0..disks).map(|row| locks.lock(format!("row {row}"), cells(row))).collect(),
            columns: (0..pegs)
                .map(|peg| locks.lock(format!("column {peg}"), Column::default()))
                .collect(),
            count: locks.lock("count".to_owned(), 0),
            draw_ns: options.draw_ns,
            window_ns: options.window_ns,
            window_every: options.window_every,
            pace: Pace::new(options.instruction_ns),
        }
    }

    /// Makes a step of `made`, number `number` on its peg, or has thread `thread` woken when it is
    /// time.
    ///
    /// # Panics
    ///
    /// If the rules forbid the step, with its name. Only a lock that does not exclude can cause
    /// that.
    pub(super) fn attempt(
        &self,
        made: Move,
        step: Step,
        number: u64,
        thread: usize,
        ledger: &mut Ledger,
    ) -> Attempt {
        let peg = if step == Step::Lift { made.from } else { made.to };
        let (row, next) = {
            let mut on = ledger.lock(&self.pegs[peg as usize]);
            stanchion_machine::write(&*on);
            self.pace.compute(SECTION);
            if on.steps != number {
                on.waiting.push((number, thread));
                return Attempt::TooEarly;
            }
            let row = on.make(made, step);
            (row, on.next())
        };
        let drawn = (step == Step::Lower).then_some(made.disk);
        {
            let mut cells = ledger.lock(&self.rows[row]);
            let cell = &mut cells[peg as usize];
            stanchion_machine::write(cell);
            // Invariant 4.
            if cell.steps <= number {
                *cell = Cell { disk: drawn, steps: number + 1 };
            }
            self.draw();
        }
        let mut disk = ledger.lock(&self.disks[made.disk as usize]);
        stanchion_machine::write(&*disk);
        self.pace.compute(SECTION);
        disk.held = step == Step::Lift;
        disk.moves += u64::from(step == Step::Lower);
        Attempt::Made(next)
    }

    /// Carries a disk past a peg; `fly` is what takes the time.
    pub(super) fn pass(&self, peg: u8, ledger: &mut Ledger, fly: impl FnOnce()) {
        let column = &self.columns[peg as usize];
        {
            let mut column = ledger.lock(column);
            stanchion_machine::write(&*column);
            column.above += 1;
            column.passed += 1;
            self.draw();
            if self.window_ns > 0 && column.passed.is_multiple_of(self.window_every) {
                thread::sleep(Duration::from_nanos(self.window_ns));
            }
        }
        fly();
        let mut column = ledger.lock(column);
        column.above -= 1;
        self.draw();
    }

    /// Takes the time of a drawing, while the lock of its data is held.
    fn draw(&self) {
        if self.draw_ns > 0 {
            stanchion_machine::burn(self.draw_ns);
        }
    }

    /// Counts a move.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        let mut count = ledger.lock(&self.count);
        stanchion_machine::write(&*count);
        self.pace.compute(SECTION);
        *count += 1;
    }

    /// Returns the contents of the display.
    pub(super) fn scene(&self, of: u64, ledger: &mut Ledger) -> Scene {
        let moves = *ledger.lock(&self.count);
        let mut pegs = vec![Vec::new(); self.pegs.len()];
        for row in &self.rows {
            for (peg, cell) in pegs.iter_mut().zip(ledger.lock(row).iter()) {
                peg.extend(cell.disk);
            }
        }
        let disks = (0..).zip(&self.disks);
        let held = disks.filter(|(_, disk)| ledger.lock(disk).held).map(|(disk, _)| disk).collect();
        Scene { moves, of, pegs, held }
    }

    /// Returns the remains, for when no thread moves a disk any more.
    pub(super) fn remains(&self, ledger: &mut Ledger) -> Remains {
        let scene = self.scene(0, ledger);
        let columns: Vec<Column> = self.columns.iter().map(|column| *ledger.lock(column)).collect();
        Remains {
            pegs: self.pegs.iter().map(|peg| ledger.lock(peg).stack.clone()).collect(),
            shown: scene.pegs,
            held: scene.held,
            counted: scene.moves,
            moved: self.disks.iter().map(|disk| ledger.lock(disk).moves).sum(),
            passed: columns.iter().map(|column| column.passed).sum(),
            above: columns.iter().map(|column| column.above).sum(),
        }
    }
}

impl Peg {
    /// Makes a step and says at which height.
    fn make(&mut self, Move { disk, from, to }: Move, step: Step) -> usize {
        let top = self.stack.last().copied();
        match (step, top) {
            (Step::Lift, Some(top)) if top == disk => {
                self.stack.pop();
                self.stack.len()
            }
            (Step::Lift, Some(top)) => {
                panic!(
                    "disk {disk} cannot be lifted from peg {from} to peg {to}: disk {top} is on top"
                )
            }
            (Step::Lift, None) => {
                panic!(
                    "disk {disk} cannot be lifted from peg {from} to peg {to}: peg {from} is empty"
                )
            }
            (Step::Lower, Some(top)) if top <= disk => {
                panic!(
                    "disk {disk} of peg {from} cannot be lowered onto peg {to}: disk {top} there is not larger"
                )
            }
            (Step::Lower, _) => {
                self.stack.push(disk);
                self.stack.len() - 1
            }
        }
    }

    /// Counts a step, and returns the thread that waits for the next one.
    fn next(&mut self) -> Option<usize> {
        self.steps += 1;
        let next = self.waiting.iter().position(|&(number, _)| number == self.steps)?;
        Some(self.waiting.swap_remove(next).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Lock = parking_lot::RawMutex;

    fn board(disks: usize, pegs: usize) -> (Board<Lock>, Ledger) {
        let make = |_: &str| Lock::INIT;
        let mut locks = Locksmith::new(&make);
        let options = Options { disks, pegs, draw_ns: 0, ..Options::default() };
        let board = Board::new(&options, &mut locks);
        (board, Ledger::new(locks.names().len()))
    }

    #[test]
    fn a_forbidden_step_is_named() {
        let (board, mut ledger) = board(3, 3);
        let mut step = |disk, from, to, step, number| {
            let made = Move { disk, from, to };
            let attempt = AssertUnwindSafe(|| board.attempt(made, step, number, 0, &mut ledger));
            catch_unwind(attempt).map_err(|panic| *panic.downcast::<String>().expect("a message"))
        };
        assert_eq!(
            step(1, 0, 2, Step::Lift, 0).unwrap_err(),
            "disk 1 cannot be lifted from peg 0 to peg 2: disk 0 is on top"
        );
        assert_eq!(
            step(1, 1, 2, Step::Lift, 0).unwrap_err(),
            "disk 1 cannot be lifted from peg 1 to peg 2: peg 1 is empty"
        );
        assert_eq!(step(0, 0, 2, Step::Lift, 0), Ok(Attempt::Made(None)));
        assert_eq!(step(0, 0, 2, Step::Lower, 0), Ok(Attempt::Made(None)));
        assert_eq!(step(1, 0, 2, Step::Lift, 1), Ok(Attempt::Made(None)));
        assert_eq!(
            step(1, 0, 2, Step::Lower, 1).unwrap_err(),
            "disk 1 of peg 0 cannot be lowered onto peg 2: disk 0 there is not larger"
        );
    }

    #[test]
    fn an_early_thread_is_named_when_it_is_time() {
        let (board, mut ledger) = board(3, 3);
        let made = |disk, to| Move { disk, from: 0, to };
        assert_eq!(board.attempt(made(2, 1), Step::Lift, 2, 7, &mut ledger), Attempt::TooEarly);
        assert_eq!(board.attempt(made(1, 1), Step::Lift, 1, 5, &mut ledger), Attempt::TooEarly);
        assert_eq!(
            board.attempt(made(0, 2), Step::Lift, 0, 3, &mut ledger),
            Attempt::Made(Some(5))
        );
        assert_eq!(
            board.attempt(made(1, 1), Step::Lift, 1, 5, &mut ledger),
            Attempt::Made(Some(7))
        );
        assert_eq!(board.scene(9, &mut ledger).held, [0, 1]);
        assert_eq!(board.scene(9, &mut ledger).pegs, [vec![2], vec![], vec![]]);
    }
}
