//! The plan of a random grid, and the names of its cells.

use std::time::Duration;

use super::{Entrant, FAMILIES, Family};
use crate::contestants::{Role, choose_among};
use crate::options::{Options, START, window};

/// The reason why options make no random grid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No family has this name.
    #[error("no family is called `{family}`; there are {}", .all.join(", "))]
    UnknownFamily {
        /// The name.
        family: String,
        /// The names of all families.
        all: Vec<&'static str>,
    },

    /// A grid of no cells.
    #[error("a random grid needs at least one cell: --random 60 is usual")]
    NoCell,

    /// A text is not the name of a cell.
    #[error(
        "`{0}` names no random cell: a name is FAMILY:SEED:INDEX, as in locks:1989:17, and stands \
         in the tables of --random"
    )]
    Malformed(String),

    /// A filter matches no contestant.
    #[error("no contestant matches `{filter}`; there are {}, and the words ours and peers", .all.join(", "))]
    UnknownContestant {
        /// The filter.
        filter: String,
        /// The names of all contestants.
        all: Vec<&'static str>,
    },
}

/// A cell, before it is drawn. Seed and index are all that the cell depends on, beside the
/// distributions and the number of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The seed of the grid.
    pub(super) seed: u64,
    /// The number of the cell in the grid, from 0 on.
    pub(super) index: u32,
}

/// The cells, the contestants, the number of rounds, the length of a race and the time for all.
pub struct Plan {
    /// The family.
    pub(super) family: &'static Family,
    /// The cells.
    pub(super) cells: Vec<Place>,
    /// All contestants of the family.
    pub(super) entrants: Vec<Entrant>,
    /// The contestants that take part, by number; the default is among them.
    pub(super) columns: Vec<usize>,
    /// The number of races of each contestant in one visit to a cell.
    pub(super) rounds: usize,
    /// The counted window of a race.
    pub(super) window: Duration,
    /// The time after which no cell is measured again.
    pub(super) time: Duration,
    /// True if the grid says what to use: contestants and cells are not chosen by hand.
    pub(super) is_open: bool,
}

/// Seconds for a visit to a cell, and seconds for each cell in which all its visits must fit.
const USUAL: (u64, u64) = (12, 29);

/// The same in a quick study.
const QUICK: (u64, u64) = (2, 5);

impl Plan {
    /// Makes the plan for `options`, if they ask for a random grid.
    pub fn new(options: &Options) -> Result<Option<Self>, Refusal> {
        let (name, cells) = match (&options.replay, options.random) {
            (Some(replay), _) => {
                let (family, place) =
                    parse(replay).ok_or_else(|| Refusal::Malformed(replay.clone()))?;
                (family, vec![place])
            }
            (None, Some(0)) => return Err(Refusal::NoCell),
            (None, Some(number)) => {
                let place = |index| Place { seed: options.seed, index };
                (options.family.as_deref().unwrap_or("locks"), (0..number).map(place).collect())
            }
            (None, None) => return Ok(None),
        };
        let family = FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| {
            let all = FAMILIES.iter().map(|family| family.name).collect();
            Refusal::UnknownFamily { family: name.to_owned(), all }
        })?;
        let entrants = (family.entrants)();
        let columns = columns(family, &entrants, options)?;
        let (visit, time) = if options.quick { QUICK } else { USUAL };
        let rounds = options.rounds.map_or(if options.quick { 3 } else { 5 }, usize::from);
        let window = match options.window_ms {
            Some(millis) => Duration::from_millis(millis),
            None => window(visit, (columns.len() + 1) * rounds),
        };
        let time = Duration::from_secs(time) * u32::try_from(cells.len()).unwrap_or(u32::MAX);
        let is_open = options.contestants.is_empty() && options.replay.is_none();
        Ok(Some(Self { family, cells, entrants, columns, rounds, window, time, is_open }))
    }

    /// Returns the time that a race should take.
    pub(super) fn race(&self) -> Duration {
        self.window * 35 / 24 + START
    }

    /// Returns the name of a cell.
    pub(super) fn name(&self, place: Place) -> String {
        format!("{}:{}:{}", self.family.name, place.seed, place.index)
    }

    /// Returns the names of the columns. The last is the default's double.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |&column: &usize| self.entrants[column].name.to_owned();
        let double = format!("{} again", self.entrants[self.columns[self.default()]].name);
        self.columns.iter().map(name).chain([double]).collect()
    }

    /// Returns the column of the default.
    pub(super) fn default(&self) -> usize {
        let is_default = |&column: &usize| self.entrants[column].role == Role::Default;
        self.columns.iter().position(is_default).unwrap_or(0)
    }

    /// Returns the columns of the contestants for which `holds` is true.
    pub(super) fn those(&self, holds: impl Fn(&Entrant) -> bool) -> Vec<usize> {
        (0..self.columns.len()).filter(|&at| holds(&self.entrants[self.columns[at]])).collect()
    }
}

/// Returns the contestants that take part: the default, and those that the options choose.
fn columns(
    family: &Family,
    entrants: &[Entrant],
    options: &Options,
) -> Result<Vec<usize>, Refusal> {
    let all: Vec<(&'static str, Role)> =
        entrants.iter().map(|entrant| (entrant.name, entrant.role)).collect();
    let entered =
        |role| options.sweep || family.ours_enter || matches!(role, Role::Default | Role::Peer);
    let mut chosen = choose_among(&all, &options.contestants, entered).map_err(|filter| {
        Refusal::UnknownContestant { filter, all: all.iter().map(|(name, _)| *name).collect() }
    })?;
    for (chosen, (_, role)) in chosen.iter_mut().zip(&all) {
        *chosen |= *role == Role::Default;
    }
    Ok((0..all.len()).filter(|&entrant| chosen[entrant]).collect())
}

/// Takes the name of a cell apart.
fn parse(name: &str) -> Option<(&str, Place)> {
    let mut parts = name.split(':');
    let (family, seed, index) = (parts.next()?, parts.next()?, parts.next()?);
    let place = Place { seed: seed.parse().ok()?, index: index.parse().ok()? };
    (parts.next().is_none() && !family.is_empty()).then_some((family, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(random: u32) -> Options {
        Options { random: Some(random), seed: 7, ..Options::default() }
    }

    fn plan(options: &Options) -> Plan {
        Plan::new(options).expect("it is a plan").expect("of a random grid")
    }

    fn refused(options: &Options) -> String {
        Plan::new(options).err().expect("it is refused").to_string()
    }

    #[test]
    fn a_name_leads_back_to_its_cell() {
        let grid = plan(&options(3));
        assert_eq!(grid.name(grid.cells[2]), "locks:7:2");
        let replay = Some(grid.name(grid.cells[2]));
        let again = plan(&Options { replay, ..Options::default() });
        assert_eq!(again.cells, [grid.cells[2]]);
    }

    #[test]
    fn malformed_names_and_unknown_families_are_refused() {
        for name in ["", "locks", "locks:1", "locks:1:x", "locks:1:2:3", ":1:2", "locks:-1:2"] {
            let replay = Some(name.to_owned());
            let said = refused(&Options { replay, ..Options::default() });
            assert!(said.contains("FAMILY:SEED:INDEX"), "{name}: {said}");
        }
        let said = refused(&Options { family: Some("latches".to_owned()), ..options(3) });
        assert!(said.contains("`latches`") && said.contains("locks"), "{said}");
        assert!(refused(&options(0)).contains("at least one cell"));
        let said = refused(&Options { contestants: vec!["glibc".to_owned()], ..options(3) });
        assert!(said.contains("parking_lot"), "{said}");
        assert!(Plan::new(&Options::default()).unwrap().is_none(), "a named grid");
    }

    #[test]
    fn defaults_and_peers_enter_and_the_rest_if_asked_for() {
        let of = |contestants: &[&str], sweep| {
            let contestants = contestants.iter().map(|&name| name.to_owned()).collect();
            plan(&Options { contestants, sweep, ..options(3) }).names()
        };
        let usual = of(&[], false);
        assert_eq!(usual[0], "Adaptive");
        assert_eq!(usual.last().unwrap(), "Adaptive again");
        assert!(usual.contains(&"std".to_owned()) && !usual.contains(&"AlwaysBlock".to_owned()));
        assert!(of(&[], true).len() > usual.len());
        assert_eq!(of(&["parking_lot"], false), ["Adaptive", "parking_lot", "Adaptive again"]);
    }

    #[test]
    fn sixty_cells_take_at_most_half_an_hour() {
        let plan = plan(&options(60));
        assert!(plan.time <= Duration::from_secs(30 * 60));
        let races = (plan.columns.len() + 1) * plan.rounds;
        let visit = plan.race() * races as u32;
        assert!(visit * 60 < plan.time / 2, "each cell can be measured twice: {visit:?}");
    }
}
