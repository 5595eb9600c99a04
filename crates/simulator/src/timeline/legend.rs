//! The legend of a drawing: the meaning of the colours, and the share of each.

use super::Rows;
use super::grid::Grid;
use super::text::{GAP, LETTER, percent_of, text};
use crate::statistics::Activity;
use core::fmt::{self, Formatter};

/// The colours of Okabe and Ito, which most people with deficient colour vision can tell apart.
pub(super) const COLOURS: [&str; Activity::ALL.len()] =
    ["#009e73", "#e69f00", "#d55e00", "#cc79a7", "#f0e442", "#d4d4d4"];

/// The colours and the shares of all drawn time, in as many lines as they need.
pub(super) struct Legend {
    /// The colours and their texts.
    entries: Vec<(&'static str, String)>,
}

impl Legend {
    pub(super) fn new(grid: &Grid, rows: usize, kind: Rows) -> Self {
        let mut sums = [0_u128; Activity::ALL.len()];
        for row in 0..rows {
            sums.iter_mut().zip(grid.sums(row)).for_each(|(sum, more)| *sum += u128::from(more));
        }
        let all: u128 = sums.iter().sum();
        let shown = |activity: Activity| match activity {
            // A ready or blocked thread is on no processor.
            Activity::Ready | Activity::Blocked => kind == Rows::Threads,
            _ => true,
        };
        let activities = Activity::ALL.into_iter().filter(|&activity| shown(activity));
        let entries = activities.map(|activity| {
            let share = percent_of(sums[activity as usize], all);
            (COLOURS[activity as usize], format!("{} {share}", activity.name()))
        });
        Self { entries: entries.collect() }
    }

    /// Returns the offsets of the entries from the first.
    fn offsets(&self, width: usize) -> Vec<(usize, usize)> {
        let (mut x, mut y) = (GAP, 0);
        let offset = |(_, label): &(&str, String)| {
            let needs = GAP + 4 + (label.chars().count() + 2) * LETTER;
            if x > GAP && x + needs > width {
                (x, y) = (GAP, y + 16);
            }
            let at = (x, y);
            x += needs;
            at
        };
        self.entries.iter().map(offset).collect()
    }

    pub(super) fn height(&self, width: usize) -> usize {
        self.offsets(width).last().map_or(0, |offset| offset.1 + 16)
    }

    pub(super) fn draw(&self, out: &mut Formatter<'_>, top: usize, width: usize) -> fmt::Result {
        for ((colour, label), (x, y)) in self.entries.iter().zip(self.offsets(width)) {
            let y = top + y;
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{}\" width=\"{GAP}\" height=\"{GAP}\" fill=\"{colour}\"/>",
                y - 10
            )?;
            text(out, (x + GAP + 4, y), "start", label)?;
        }
        Ok(())
    }
}
