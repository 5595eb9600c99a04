//! The options of the study of regret, and the plan that follows from them.

use std::time::Duration;

use super::contestants::{self, CONTESTANTS, Contestant, Role};
use super::grid::{self, Cell};
use stanchion_study::measure::Precision;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Takes few cells and rounds.
    pub quick: bool,
    /// Takes the whole grid.
    pub full: bool,
    /// Tokens of the names of the cells to take; the scale decides if there are none.
    pub cells: Vec<String>,
    /// Parts of the names of the contestants to take, or `ours` and `peers`; all if there are none.
    pub contestants: Vec<String>,
    /// The number of runs of each contestant in each cell.
    pub rounds: Option<u8>,
    /// The length of the counted window of one run, in milliseconds.
    pub window_ms: Option<u64>,
    /// Enters our adaptive policies with other steps and limits as well.
    pub sweep: bool,
    /// Draws so many cells, in place of the named ones.
    pub random: Option<u32>,
    /// The family that the cells are drawn for; mutexes if there is none.
    pub family: Option<String>,
    /// The name of the one drawn cell to measure again.
    pub replay: Option<String>,
    /// The seed that the cells are drawn from.
    pub seed: u64,
}

/// The reason why options make no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Tokens name no cell.
    #[error(
        "no cell has all tokens of `{0}`. A cell is named THREADS-SECTION-OUTSIDE-COMPANY, of 1t 2t 4t \
         8t 32t, 0ns 100ns 1us 10us 200us, tight 4x, quiet hogs, as in 8t-1us-4x-hogs; two more \
         are phases and sleeper. Some tokens mean all cells that have them: 8t-hogs"
    )]
    UnknownCell(String),

    /// A filter matches no contestant.
    #[error("no contestant matches `{filter}`; there are {}, and the words ours and peers", .all.join(", "))]
    UnknownContestant {
        /// The filter.
        filter: String,
        /// The names of all contestants.
        all: Vec<&'static str>,
    },
}

/// The cells, the contestants, the number of rounds and the length of a race.
#[derive(Clone)]
pub struct Plan {
    /// The chosen part of the grid.
    pub(crate) cells: Vec<Cell>,
    /// The mutexes that race in each cell.
    pub(crate) contestants: Vec<&'static Contestant>,
    /// The precision of the bars' figures. A round is a race of each contestant in each cell.
    pub(crate) precision: Precision,
    /// The counted window of one race.
    pub(crate) window: Duration,
    /// A description of the choice of cells, for a reader.
    pub(crate) selection: String,
}

/// The default choice of cells and the time limit of the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Quick,
    Named,
    Full,
}

impl Scale {
    /// Returns the rounds, and the seconds for the whole run if all of them are run.
    fn budget(self) -> (Precision, u64) {
        match self {
            Self::Quick => (Precision::quick("regret"), 45),
            Self::Named => (Precision::rounds(4), 570),
            Self::Full => (Precision::rounds(5), 3_000),
        }
    }
}

/// The time of a race beside its counted window: the threads' start and end, and the other windows.
pub(crate) const START: Duration = Duration::from_millis(12);

impl Plan {
    /// Makes the plan for `options`. Refuses a filter that matches nothing.
    pub fn new(options: &Options) -> Result<Self, Refusal> {
        let scale = match (options.quick, options.full) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Full,
            _ => Scale::Named,
        };
        let (cells, selection) = if options.cells.is_empty() {
            match scale {
                Scale::Quick => (grid::eight(), "8 named cells"),
                Scale::Named => (grid::twenty_five(), "25 named cells"),
                Scale::Full => (grid::whole(), "the whole grid of 102 cells"),
            }
        } else {
            let chosen = grid::choose(&options.cells).map_err(Refusal::UnknownCell)?;
            (chosen, "cells chosen by hand")
        };
        let contestants =
            contestants::choose(&options.contestants, options.sweep).map_err(|filter| {
                Refusal::UnknownContestant {
                    filter,
                    all: CONTESTANTS.iter().map(|contestant| contestant.name).collect(),
                }
            })?;
        let (precision, seconds) = scale.budget();
        let asked = options.rounds.map(|rounds| Precision::rounds(usize::from(rounds)));
        let precision = asked.unwrap_or(precision);
        let window = match options.window_ms {
            Some(millis) => Duration::from_millis(millis),
            None => window(seconds, cells.len() * (contestants.len() + 1) * precision.most),
        };
        Ok(Self { cells, contestants, precision, window, selection: selection.to_owned() })
    }

    /// Returns the number of races, the double's included.
    pub(crate) fn races(&self) -> usize {
        let rounds = self.precision.most;
        self.cells.len() * (self.contestants.len() * rounds + rounds.saturating_sub(1))
    }

    /// Returns the columns of the contestants that may set the best of a cell: all but our policies
    /// with other steps. If there are no other contestants, those may set it too.
    pub(crate) fn setters(&self) -> Vec<usize> {
        let all = 0..self.contestants.len();
        let some: Vec<usize> =
            all.clone().filter(|&column| self.contestants[column].role != Role::Step).collect();
        if some.is_empty() { all.collect() } else { some }
    }

    /// Returns the column of the lock that is judged, if it takes part.
    pub(crate) fn judged(&self) -> Option<usize> {
        self.contestants.iter().position(|contestant| contestant.role == Role::Default)
    }

    /// Returns the time that the threads run before the counted window.
    pub(crate) fn settle(&self) -> Duration {
        self.window / 8
    }

    /// Returns the length of the window in which every wait is timed.
    pub(crate) fn timed(&self) -> Duration {
        self.window / 3
    }
}

/// The window that fills `seconds` with so many races; from 40 ms, two phases, to half a second,
/// beyond which little is won.
pub(crate) fn window(seconds: u64, races: usize) -> Duration {
    let each = Duration::from_secs(seconds) / u32::try_from(races.max(1)).unwrap_or(u32::MAX);
    // With the settling before it and the timed window after it, a window takes 35/24 of itself.
    (each.saturating_sub(START) * 24 / 35)
        .clamp(Duration::from_millis(40), Duration::from_millis(500))
}
