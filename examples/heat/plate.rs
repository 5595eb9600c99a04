//! A plate, and the work of its members: each has some of its rows.
//!
//! The plate's rim is cold and a round stove in it is hot. In each step a cell moves towards the
//! mean of its four neighbours. For that a member needs the rows next to its own. So in each step
//! all members hand one row up and one row down: few words, and no member can go on without them.
//! This is the fine grain that gangs are for.
//!
//! ```text
//! row -1  . . . . . .   the last row of the member before
//! row 0   a a a a a a   \
//! row 1   a a a a a a    its own
//! row 2   a a a a a a   /
//! row 3   . . . . . .   the first row of the member after
//! ```
//!
//! Each cell is computed by the same operations in the same order whichever member has it. So the
//! end does not depend on the number of members, to the last bit.

use stanchion_gang::{Ended, Member};
use std::ops::Range;

/// The part of the way to its neighbours' mean that a cell goes in a step, a quarter of it. More
/// than 1 would not be stable.
const PACE: f64 = 0.8;

/// Steps from one look at the largest change to the next.
const EVERY: u64 = 16;

/// Temperature of the stove; that of the rim is 0.
pub const HOT: f64 = 1.0;

/// The rows of the first member to the last, which differ by one at most.
pub fn rows(side: usize, members: usize, index: usize) -> Range<usize> {
    index * side / members..(index + 1) * side / members
}

/// The task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plate {
    /// Cells from side to side.
    pub(crate) side: usize,
    /// The number of steps.
    pub(crate) steps: u64,
    /// The position of the stove, as parts of the side from the top and from the left.
    pub(crate) stove: [f64; 2],
}

impl Plate {
    /// The stove of gang `number` is elsewhere than that of the one before: a third of the circle
    /// around the middle further.
    pub fn new(side: usize, steps: u64, number: usize) -> Self {
        let angle = number as f64 * std::f64::consts::TAU / 3.0;
        Self { side, steps, stove: [0.5 - 0.25 * angle.cos(), 0.5 + 0.25 * angle.sin()] }
    }

    fn is_stove(&self, row: usize, column: usize) -> bool {
        let part = |cell: usize| (cell as f64 + 0.5) / self.side as f64;
        let away = [part(row) - self.stove[0], part(column) - self.stove[1]];
        away[0] * away[0] + away[1] * away[1] < 0.01
    }
}

/// The end of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Warm {
    /// Row by row.
    pub cells: Vec<f64>,
    /// The largest change of a cell in the last step that was looked at.
    pub change: f64,
}

impl Warm {
    /// Of every bit of every cell.
    pub fn checksum(&self) -> u64 {
        self.cells.iter().fold(0xcbf2_9ce4_8422_2325, |sum, cell| {
            (sum ^ cell.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
        })
    }
}

/// Some rows of a plate, with one more above and one more below.
struct Share<'p> {
    /// The task.
    plate: &'p Plate,
    /// The rows of this member.
    rows: Range<usize>,
    /// The cells now, with a row of each neighbour.
    now: Vec<f64>,
    /// The cells after the next step.
    next: Vec<f64>,
}

impl<'p> Share<'p> {
    fn new(plate: &'p Plate, rows: Range<usize>) -> Self {
        let side = plate.side;
        let mut now = vec![0.0; (rows.len() + 2) * side];
        for (row, cells) in rows.clone().zip(now[side..].chunks_mut(side)) {
            for (column, cell) in cells.iter_mut().enumerate() {
                if plate.is_stove(row, column) {
                    *cell = HOT;
                }
            }
        }
        let next = now.clone();
        Self { plate, rows, now, next }
    }

    fn first(&self) -> &[f64] {
        &self.now[self.plate.side..][..self.plate.side]
    }

    fn last(&self) -> &[f64] {
        &self.now[self.rows.len() * self.plate.side..][..self.plate.side]
    }

    /// The rows next to its own, as they are now. There is none at the rim, which stays cold.
    fn hear(&mut self, above: Option<&[f64]>, below: Option<&[f64]>) {
        let side = self.plate.side;
        if let Some(above) = above {
            self.now[..side].copy_from_slice(above);
        }
        if let Some(below) = below {
            let end = self.now.len();
            self.now[end - side..].copy_from_slice(below);
        }
    }

    /// One step; the largest change.
    fn step(&mut self) -> f64 {
        let side = self.plate.side;
        let mut change: f64 = 0.0;
        for own in 0..self.rows.len() {
            let row = self.rows.start + own;
            let at = (own + 1) * side;
            for column in 0..side {
                let cell = at + column;
                let was = self.now[cell];
                let left = if column > 0 { self.now[cell - 1] } else { 0.0 };
                let right = if column + 1 < side { self.now[cell + 1] } else { 0.0 };
                let around = self.now[cell - side] + self.now[cell + side] + left + right;
                let is = if self.plate.is_stove(row, column) {
                    HOT
                } else {
                    was + PACE * (around / 4.0 - was)
                };
                change = change.max((is - was).abs());
                self.next[cell] = is;
            }
        }
        std::mem::swap(&mut self.now, &mut self.next);
        change
    }

    fn own(self) -> Vec<f64> {
        let side = self.plate.side;
        let end = self.now.len() - side;
        self.now[side..end].to_vec()
    }
}

/// Does the work of a member. Member 0 gets the whole plate.
pub fn warm(member: &mut Member, plate: &Plate) -> Result<Option<Warm>, Ended> {
    let mut share = Share::new(plate, rows(plate.side, member.len(), member.index()));
    let mut change = 0.0;
    for step in 1..=plate.steps {
        let (above, below) = member.exchange_with_neighbours(share.first(), share.last())?;
        share.hear(above.as_deref(), below.as_deref());
        let mine = share.step();
        if step % EVERY == 0 || step == plate.steps {
            change = member.all_reduce(mine, f64::max)?;
        }
    }
    let parts = member.gather_lists(0, share.own())?;
    Ok(parts.map(|parts| Warm { cells: parts.concat(), change }))
}

/// The same without a gang.
pub fn alone(plate: &Plate) -> Warm {
    let mut share = Share::new(plate, 0..plate.side);
    let mut change = 0.0;
    for step in 1..=plate.steps {
        let mine = share.step();
        if step % EVERY == 0 || step == plate.steps {
            change = mine;
        }
    }
    Warm { cells: share.own(), change }
}
