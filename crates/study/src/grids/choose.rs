//! The choice among the contestants of a random grid.
//!
//! - *Best of a cell*: the most throughput of all contestants, ours and peers alike, but for one
//!   that starves a thread.
//! - *Regret*: the best of the cell over the contestant's own. A contestant that starves a thread
//!   has a regret of 1 at least.
//! - *Chosen*: the contestant with the least geometric mean of its regrets, among those that took
//!   part in all cells and starve a thread in at most two of them, or a tenth.
//! - *Equal*: a contestant with a mean within 1 % of the chosen one, or so near that the 95 %
//!   confidence interval of the difference, over cells, has 0 in it.

use serde::{Deserialize, Serialize};

use super::{Cell, FAMILIES, Figures, Grid};
use crate::command::stanchion;
use crate::student::quantile;
use crate::units::nanos;

/// The share of the cells in which a chosen contestant may starve a thread.
const STARVES: f64 = 0.1;

/// The number of cells in which it may do so in any case: in few cells chance decides.
const FEW_STARVES: f64 = 2.0;

/// The difference below which two are always equal.
const CLOSE: f64 = 1.01;

/// The fewest cells that decide anything.
pub(crate) const FEWEST: usize = 3;

/// The fewest cells of a condition that is judged alone.
const ALONE: usize = 5;

/// The most contestants in the map.
const COLUMNS: usize = 8;

/// The answer for one family.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Choice {
    /// The name of the family on the command line.
    pub family: String,
    /// The kind of thing, for a reader.
    pub title: String,
    /// The chosen contestant, then those that are equal to it.
    pub choose: Vec<String>,
    /// The share by which a contestant that is called equal may differ, in percent; if there is
    /// none, the share by which the runner-up may.
    pub within_percent: f64,
    /// The number of cells.
    pub cells: usize,
    /// True if the grid was a brief look.
    pub brief: bool,
    /// The time of the grid, in seconds since 1970.
    pub written: u64,
    /// The seed of the cells.
    pub seed: u64,
    /// The version that measured them.
    pub version: String,
    /// The number of processors that it was measured on.
    pub processors: usize,
    /// The contestants, the least regret first.
    pub standings: Vec<Standing>,
    /// The contestants that cannot be chosen, and the reason of each.
    pub left_out: Vec<(String, String)>,
    /// The mean regrets in parts of the cells, the first of them all cells.
    pub conditions: Vec<Condition>,
}

/// The regrets of one contestant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// The name.
    pub name: String,
    /// The geometric mean of the regrets of throughput.
    pub mean: f64,
    /// The regret that nine cells of ten do not exceed.
    pub p90: f64,
    /// The largest regret.
    pub worst: f64,
    /// The geometric mean of processor time for an operation over the least of the cell.
    pub processor_time: Option<f64>,
    /// The geometric mean of the 99.9th percentile of waits over the least of the cell.
    pub tail: Option<f64>,
    /// The number of cells in which it starved a thread.
    pub starves: usize,
}

/// A part of the cells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// The cells, for a reader.
    pub words: String,
    /// The number of cells.
    pub cells: usize,
    /// The mean regret of each contestant of the map, in the order of the standings.
    pub means: Vec<f64>,
    /// The contestant that is better here than the chosen one, and how many times.
    pub instead: Option<(String, f64)>,
}

/// A contestant that may be chosen, and the logarithms of its regrets by cell.
struct Candidate {
    /// The number among the contestants.
    number: usize,
    /// The logarithms.
    logs: Vec<f64>,
}

impl Candidate {
    fn mean(&self, cells: &[usize]) -> f64 {
        mean(cells.iter().map(|&cell| self.logs[cell]))
    }
}

/// Returns the answer of a grid, if it has enough cells.
pub fn choose(grid: &Grid) -> Option<Choice> {
    if grid.cells.len() < FEWEST {
        return None;
    }
    let everywhere: Vec<usize> = (0..grid.cells.len()).collect();
    let mut candidates = candidates(grid);
    candidates.sort_by(|a, b| a.mean(&everywhere).total_cmp(&b.mean(&everywhere)));
    let (first, others) = candidates.split_first()?;
    let compared = |other: &Candidate| compare(first, other, &everywhere);
    let name = |candidate: &Candidate| name(grid, candidate.number);
    let equal: Vec<_> = others.iter().filter(|other| is_equal(compared(other))).collect();
    // Each of those that are called equal may be so far away. If there is none, so may the second.
    let unsure = equal.iter().copied().chain(others.first());
    let within = unsure.map(|other| compared(other).1).fold(0.0, f64::max);
    let columns = &candidates[..candidates.len().min(COLUMNS)];
    Some(Choice {
        family: grid.family.clone(),
        title: title(&grid.family).to_owned(),
        choose: std::iter::once(first).chain(equal).map(name).collect(),
        within_percent: (within.exp().max(CLOSE) - 1.0) * 100.0,
        cells: grid.cells.len(),
        brief: grid.brief,
        written: grid.written,
        seed: grid.seed,
        version: grid.version.clone(),
        processors: grid.processors,
        standings: candidates.iter().map(|candidate| standing(grid, candidate)).collect(),
        left_out: left_out(grid, &candidates),
        conditions: conditions(grid)
            .into_iter()
            .map(|(words, cells)| {
                let better = others.iter().filter_map(|other| {
                    let (less, half) = compare(other, first, &cells);
                    (cells.len() >= ALONE && !is_equal((less, half))).then_some((other, less))
                });
                let better = better.filter(|(_, less)| *less > 0.0);
                let most = better.max_by(|a, b| a.1.total_cmp(&b.1));
                Condition {
                    words,
                    cells: cells.len(),
                    means: columns.iter().map(|column| column.mean(&cells).exp()).collect(),
                    instead: most.map(|(other, less)| (name(other), less.exp())),
                }
            })
            .collect(),
    })
}

/// Returns the kind of thing that a family compares.
pub(super) fn title(family: &str) -> &str {
    FAMILIES.iter().find(|(name, _)| *name == family).map_or(family, |(_, title)| title)
}

/// Returns the name of a contestant for a reader: ours with the name of this workspace.
fn name(grid: &Grid, contestant: usize) -> String {
    let name = &grid.contestants[contestant];
    match (grid.peers[contestant], grid.family.as_str(), name.as_str()) {
        (true, _, _) => name.clone(),
        (false, "locks", "Adaptive") => "stanchion Mutex".to_owned(),
        (false, _, _) => format!("stanchion {name}"),
    }
}

fn candidates(grid: &Grid) -> Vec<Candidate> {
    let bests: Vec<f64> = grid.cells.iter().map(best).collect();
    let candidate = |number: usize| {
        let log = |(cell, best): (&Cell, &f64)| {
            let figures = cell.figures[number].filter(|of| of.throughput > 0.0)?;
            let regret = best / figures.throughput;
            Some(if figures.fair { regret } else { regret.max(1.0) }.ln())
        };
        let logs: Option<Vec<f64>> = grid.cells.iter().zip(&bests).map(log).collect();
        Some(Candidate { number, logs: logs? })
    };
    let all: Vec<Candidate> = (0..grid.contestants.len()).filter_map(candidate).collect();
    let most = (STARVES * grid.cells.len() as f64).max(FEW_STARVES);
    let is_fair = |candidate: &Candidate| starves(grid, candidate.number) as f64 <= most;
    if all.iter().any(is_fair) { all.into_iter().filter(is_fair).collect() } else { all }
}

/// Returns the contestants that are no candidates, and why.
fn left_out(grid: &Grid, candidates: &[Candidate]) -> Vec<(String, String)> {
    let is_out = |&of: &usize| candidates.iter().all(|candidate| candidate.number != of);
    let reason = |of: usize| {
        let part = grid.cells.iter().filter(|cell| cell.figures[of].is_some()).count();
        match grid.cells.len() - part {
            0 => format!("starves a thread in {} of {part} cells", starves(grid, of)),
            missing => format!("has no figures in {missing} of {} cells", grid.cells.len()),
        }
    };
    let all = (0..grid.contestants.len()).filter(is_out);
    all.map(|of| (name(grid, of), reason(of))).collect()
}

fn starves(grid: &Grid, contestant: usize) -> usize {
    let unfair = |cell: &&Cell| cell.figures[contestant].is_some_and(|of| !of.fair);
    grid.cells.iter().filter(unfair).count()
}

fn best(cell: &Cell) -> f64 {
    let most = |fair: bool| {
        let figures = cell.figures.iter().flatten().filter(|of| of.fair || !fair);
        figures.map(|of| of.throughput).fold(0.0, f64::max)
    };
    if most(true) > 0.0 { most(true) } else { most(false) }
}

/// Returns by how much the logarithm of `more` is above that of `less` in the mean of `cells`, and
/// half the width of the 95 % confidence interval of that.
fn compare(less: &Candidate, more: &Candidate, cells: &[usize]) -> (f64, f64) {
    let differences: Vec<f64> =
        cells.iter().map(|&cell| more.logs[cell] - less.logs[cell]).collect();
    let (number, mean) = (differences.len() as f64, mean(differences.iter().copied()));
    if differences.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>();
    let deviation = (squares / (number - 1.0)).sqrt();
    (mean, quantile(differences.len()) * deviation / number.sqrt())
}

fn is_equal((mean, half): (f64, f64)) -> bool {
    mean.abs() <= half || mean.abs() <= CLOSE.ln()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, number) = values.fold((0.0, 0), |(sum, number), value| (sum + value, number + 1));
    sum / f64::from(number.max(1))
}

fn standing(grid: &Grid, candidate: &Candidate) -> Standing {
    let mut regrets: Vec<f64> = candidate.logs.iter().map(|log| log.exp()).collect();
    regrets.sort_by(f64::total_cmp);
    let rank = (0.9 * regrets.len() as f64).ceil() as usize;
    let over = |figure: &dyn Fn(&Figures) -> Option<f64>| {
        let one = |cell: &Cell| {
            let own = figure(&cell.figures[candidate.number]?)?;
            let fair = cell.figures.iter().flatten().filter(|of| of.fair);
            let least = fair.filter_map(figure).reduce(f64::min)?;
            Some((own / least).ln()).filter(|log| log.is_finite())
        };
        let known: Vec<f64> = grid.cells.iter().filter_map(one).collect();
        (!known.is_empty()).then(|| mean(known.into_iter()).exp())
    };
    Standing {
        name: name(grid, candidate.number),
        mean: mean(candidate.logs.iter().copied()).exp(),
        p90: regrets[rank.max(1) - 1],
        worst: regrets[regrets.len() - 1],
        processor_time: over(&|of| (of.cost > 0.0).then_some(of.cost)),
        tail: over(&|of| of.tail),
        starves: starves(grid, candidate.number),
    }
}

/// Returns the parts of the cells, with their names; an empty part is left out.
fn conditions(grid: &Grid) -> Vec<(String, Vec<usize>)> {
    let mut lengths: Vec<f64> = grid.cells.iter().map(|cell| cell.length_ns).collect();
    lengths.sort_by(f64::total_cmp);
    let middle = lengths[lengths.len() / 2];
    let those = |words: &str, is: &dyn Fn(&Cell) -> bool| {
        let cells = (0..grid.cells.len()).filter(|&cell| is(&grid.cells[cell])).collect();
        (words.to_owned(), cells)
    };
    let length = nanos(middle);
    let all = vec![
        those("all cells", &|_| true),
        those("a processor for each thread", &|cell| cell.threads <= grid.processors),
        those("more threads than processors", &|cell| cell.threads > grid.processors),
        those(&format!("work below {length}"), &|cell| cell.length_ns < middle),
        those(&format!("work from {length} on"), &|cell| cell.length_ns >= middle),
        those("no other program", &|cell| cell.hogs == 0),
        those("busy programs beside it", &|cell| cell.hogs > 0),
    ];
    all.into_iter().filter(|(_, cells): &(String, Vec<usize>)| !cells.is_empty()).collect()
}

impl Choice {
    /// Returns the chosen contestant, and those that are equal to it.
    pub fn answer(&self) -> String {
        match &self.choose[..] {
            [] => String::new(),
            [one] => one.clone(),
            [one, rest @ ..] if rest.len() <= 2 => format!("{one} (equal: {})", rest.join(", ")),
            [one, second, rest @ ..] => {
                format!("{one} (equal: {second} and {} more)", rest.len())
            }
        }
    }

    /// Returns how sure the answer is.
    pub fn sure(&self) -> String {
        let look = if self.brief { "first look: " } else { "" };
        if self.standings.len() < 2 {
            return format!("{look}{} cells, no other can be chosen", self.cells);
        }
        format!("{look}{} cells, ± {:.0} %", self.cells, self.within_percent.round().max(1.0))
    }

    /// Returns the command that measures a whole grid of the family.
    pub fn command(family: &str) -> String {
        format!("{} study regret --random 60 --family {family}", stanchion())
    }

    /// Returns where another contestant is better, in sentences.
    pub fn flips(&self) -> Vec<String> {
        let flip = |condition: &Condition| {
            let (name, times) = condition.instead.as_ref()?;
            Some(format!(
                "With {}, {name} is {times:.2} times as fast ({} cells).",
                condition.words, condition.cells
            ))
        };
        self.conditions.iter().filter_map(flip).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::grid;
    use super::*;

    #[test]
    fn the_least_mean_regret_is_chosen_and_what_lies_within_the_noise_is_equal() {
        // A is best but for one cell, B half as fast, and C now faster and now slower than A.
        let cells: Vec<Vec<f64>> = (0..20)
            .map(|cell| {
                let c = if cell % 2 == 0 { 11.0 } else { 8.0 };
                vec![10.0, 5.0, c]
            })
            .collect();
        let rows: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let choice = choose(&grid(&rows)).unwrap();
        assert_eq!(choice.choose, ["stanchion A", "C"]);
        assert_eq!(choice.answer(), "stanchion A (equal: C)");
        let a = &choice.standings[0];
        assert!((a.mean - 1.1_f64.sqrt()).abs() < 1e-9 && (a.worst - 1.1).abs() < 1e-9);
        assert!((choice.standings[2].mean - 2.0 * 1.1_f64.sqrt()).abs() < 1e-9);
        // The cells with another program are the odd ones, in which A is better.
        let flips = choice.flips();
        assert_eq!(flips.len(), 1, "{flips:?}");
        assert!(flips[0].contains("no other program, C is 1.10 times as fast"), "{flips:?}");
        assert_eq!(choice.conditions.len(), 7);
    }

    #[test]
    fn an_answer_is_as_unsure_as_any_that_is_called_equal() {
        // B is all but the same as A. C may be far away on either side.
        let cells: Vec<Vec<f64>> =
            (0..20).map(|cell| vec![10.0, 9.99, if cell % 2 == 0 { 40.0 } else { 2.0 }]).collect();
        let rows: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let choice = choose(&grid(&rows)).unwrap();
        assert_eq!(choice.choose, ["stanchion A", "B", "C"]);
        assert!(choice.within_percent > 50.0, "{}", choice.within_percent);
        let rows: Vec<&[f64]> = cells.iter().map(|row| &row[..2]).collect();
        let choice = choose(&grid(&rows)).unwrap();
        assert!(choice.within_percent <= 2.0, "{}", choice.within_percent);
    }

    #[test]
    fn a_contestant_that_starves_threads_is_not_chosen() {
        let mut grid = grid(&[&[10.0, 90.0][..]; 6]);
        for cell in &mut grid.cells {
            if let Some(figures) = &mut cell.figures[1] {
                figures.fair = false;
            }
        }
        let choice = choose(&grid).unwrap();
        assert_eq!(choice.choose, ["stanchion A"]);
        assert!((choice.standings[0].mean - 1.0).abs() < 1e-9, "a starving one sets no best");
        assert_eq!(choice.sure(), "6 cells, no other can be chosen");
        let out = ("B".to_owned(), "starves a thread in 6 of 6 cells".to_owned());
        assert_eq!(choice.left_out, [out]);
        for cell in &mut grid.cells[2..] {
            cell.figures[1] = cell.figures[0];
        }
        assert_eq!(choose(&grid).unwrap().standings.len(), 2, "two cells may be chance");
        grid.cells.truncate(2);
        assert!(choose(&grid).is_none(), "too few cells");
    }

    #[test]
    fn a_contestant_without_figures_in_a_cell_is_not_chosen() {
        let mut grid = grid(&[&[10.0, 20.0, 5.0][..]; 6]);
        grid.cells[3].figures[1] = None;
        let choice = choose(&grid).unwrap();
        assert_eq!(choice.choose, ["stanchion A"]);
        assert_eq!(choice.standings.len(), 2);
        let out = ("B".to_owned(), "has no figures in 1 of 6 cells".to_owned());
        assert_eq!(choice.left_out, [out]);
        assert_eq!(choice.sure(), "6 cells, ± 1 %");
    }
}
