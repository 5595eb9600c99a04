//! The requirements on our default mutex, and the judgement of each.
//!
//! - *Worst regret*: at most 1.20, and less than every other contestant's, over all cells.
//! - *Geometric mean of regrets*: at most 1.05, and less than every other contestant's, over all
//!   cells.
//! - *Processor time for an acquisition*: at most 1.1 times that of the best blocking lock, which
//!   is the one with the least geometric mean. It is the geometric mean over the cells of 8 and 32
//!   threads.
//! - *The gain of seeing the holder*: the best lock that sees the holder has 1.5 times the
//!   throughput of the best that does not. It is the geometric mean over the cells with hogs,
//!   sections of 1 µs, and two threads or more.
//!
//! Locks with another step of a policy enter only if asked for. They count in no bar, and neither
//! does the double.

use super::contestants::{Contestant, Role};
use super::options::Plan;
use super::race::Figures;
use super::standing::{best, geometric_mean, standing};
use stanchion_study::units::significant;

/// One requirement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The figure that is judged.
    pub(crate) what: &'static str,
    /// The limit, as text.
    pub(crate) asked: &'static str,
    /// The figure of this run, or its ratio to another contestant's if that is what is judged.
    pub(crate) figure: Option<f64>,
    /// The figure of this run, as text.
    pub(crate) here: String,
    /// The judgement; nothing if this run does not decide it.
    pub(crate) met: Option<bool>,
}

impl Bar {
    fn unknown(what: &'static str, asked: &'static str, why: &str) -> Self {
        Self { what, asked, figure: None, here: why.to_owned(), met: None }
    }
}

/// Judges all bars, by the medians and regrets of a run. Without our default there are none.
pub(crate) fn bars(plan: &Plan, cells: &[Vec<Figures>], regrets: &[Vec<f64>]) -> Vec<Bar> {
    let Some(ours) = plan.judged() else {
        return Vec::new();
    };
    let run = Run { plan, cells, regrets, ours };
    let [worst, least_worst, mean, least_mean] = run.regret();
    vec![worst, least_worst, mean, least_mean, run.cost(), run.sight()]
}

struct Run<'a> {
    /// The cells and contestants of the run.
    plan: &'a Plan,
    /// Medians, by cell and contestant.
    cells: &'a [Vec<Figures>],
    /// Losses to the best lock of the cell, by cell and contestant.
    regrets: &'a [Vec<f64>],
    /// The column of our default mutex.
    ours: usize,
}

impl Run<'_> {
    fn columns(&self, which: impl Fn(&Contestant) -> bool) -> Vec<usize> {
        let all = self.plan.contestants.iter().enumerate();
        all.filter(|(_, contestant)| contestant.role != Role::Step && which(contestant))
            .map(|(column, _)| column)
            .collect()
    }

    fn name(&self, column: usize) -> &'static str {
        self.plan.contestants[column].name
    }

    fn regret(&self) -> [Bar; 4] {
        let ours = standing(self.regrets, self.ours);
        let others = self.columns(|contestant| contestant.role != Role::Default);
        let least = |figure: &dyn Fn(usize) -> f64| {
            others
                .iter()
                .map(|&column| (figure(column), self.name(column)))
                .min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let beside = |what, figure: f64, least: Option<(f64, &str)>| match least {
            None => Bar::unknown(what, "less than every other's", "no other takes part"),
            Some((other, name)) => Bar {
                what,
                asked: "less than every other's",
                here: format!(
                    "{} beside {} of {name}, the least of the others",
                    significant(figure),
                    significant(other)
                ),
                figure: Some(figure / other),
                met: Some(figure < other),
            },
        };
        [
            Bar {
                what: "worst regret",
                asked: "at most 1.20",
                here: format!("{} in {}", significant(ours.worst), self.plan.cells[ours.at].name),
                figure: Some(ours.worst),
                met: Some(ours.worst <= 1.20),
            },
            beside(
                "worst regret",
                ours.worst,
                least(&|column| standing(self.regrets, column).worst),
            ),
            Bar {
                what: "geometric mean of regrets",
                asked: "at most 1.05",
                here: significant(ours.mean),
                figure: Some(ours.mean),
                met: Some(ours.mean <= 1.05),
            },
            beside(
                "geometric mean of regrets",
                ours.mean,
                least(&|column| standing(self.regrets, column).mean),
            ),
        ]
    }

    fn cost(&self) -> Bar {
        let (what, asked) = (
            "processor time for an acquisition, 8 and 32 threads",
            "at most 1.1 of the best blocking lock",
        );
        let rows: Vec<&Vec<Figures>> = (self.plan.cells.iter().zip(self.cells))
            .filter(|(cell, _)| cell.threads >= 8)
            .map(|(_, row)| row)
            .collect();
        let blocking =
            self.columns(|contestant| contestant.blocks && contestant.role != Role::Default);
        let mean = |column: usize| geometric_mean(rows.iter().map(|row| row[column].cost));
        let least = blocking
            .iter()
            .map(|&column| (mean(column), column))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(cost, _)| *cost > 0.0);
        let Some((cost, column)) = least else {
            return Bar::unknown(
                what,
                asked,
                "no such cell, no blocking lock, or no clock that tells",
            );
        };
        let ratio = mean(self.ours) / cost;
        Bar {
            what,
            asked,
            here: format!("{} of {}", significant(ratio), self.name(column)),
            figure: Some(ratio),
            met: Some(ratio <= 1.1),
        }
    }

    fn sight(&self) -> Bar {
        let (what, asked) = (
            "throughput of the best lock that sees the holder, hogs, 1 µs sections",
            "1.5 of the best that does not",
        );
        let seeing = self.columns(|contestant| contestant.sees_holder);
        let blind = self.columns(|contestant| !contestant.sees_holder);
        let rows: Vec<(&str, f64)> = (self.plan.cells.iter().zip(self.cells))
            .filter(|(cell, _)| cell.hogs && cell.threads > 1 && cell.laps[0].inside == 1_000)
            .map(|(cell, row)| {
                let of = |columns: &[usize]| best(columns.iter().map(|&column| &row[column]));
                (cell.name.as_str(), of(&seeing) / of(&blind))
            })
            .collect();
        let least = rows.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        match least {
            Some((cell, least)) if !seeing.is_empty() && !blind.is_empty() => {
                let mean = geometric_mean(rows.iter().map(|row| row.1));
                Bar {
                    what,
                    asked,
                    here: format!(
                        "{}, the least {} in {cell}",
                        significant(mean),
                        significant(*least)
                    ),
                    figure: Some(mean),
                    met: Some(mean >= 1.5),
                }
            }
            _ => Bar::unknown(what, asked, "no such cell, or no lock sees the holder, or all do"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::contestants::CONTESTANTS;
    use super::super::grid;
    use super::super::standing::regrets;
    use super::*;
    use stanchion_study::measure::Precision;

    fn contestant(name: &'static str, role: Role, blocks: bool, sees: bool) -> &'static Contestant {
        let race = CONTESTANTS[0].race;
        Box::leak(Box::new(Contestant { name, role, blocks, sees_holder: sees, race }))
    }

    fn plan(cells: &[&str], contestants: Vec<&'static Contestant>) -> Plan {
        let names: Vec<String> = cells.iter().map(|&name| name.to_owned()).collect();
        Plan {
            cells: grid::choose(&names).unwrap(),
            contestants,
            precision: Precision::rounds(5),
            window: Duration::from_millis(1),
            selection: String::new(),
        }
    }

    fn figures(throughput: f64, cost: f64) -> Figures {
        Figures { throughput, cost, fairness: 1.0, ..Figures::default() }
    }

    fn judged(plan: &Plan, cells: &[Vec<Figures>]) -> Vec<Option<bool>> {
        let regrets = regrets(cells, &plan.setters());
        bars(plan, cells, &regrets).into_iter().map(|bar| bar.met).collect()
    }

    #[test]
    fn every_bar_can_be_met_and_missed() {
        let contestants = || {
            vec![
                contestant("ours", Role::Default, true, true),
                contestant("peer", Role::Peer, true, false),
            ]
        };
        let plan = plan(&["8t-1us-4x-hogs", "1t-0ns-tight-quiet"], contestants());
        let alone = [figures(99.0, 1.0), figures(100.0, 1.0)];
        let crowd = |ours, cost| vec![figures(ours, cost), figures(100.0, 10.0)];
        let all = |met| vec![Some(met); 6];
        assert_eq!(judged(&plan, &[alone.to_vec(), crowd(160.0, 10.9)]), all(true));
        assert_eq!(judged(&plan, &[alone.to_vec(), crowd(80.0, 11.1)]), all(false));
    }

    #[test]
    fn what_did_not_take_part_is_not_judged() {
        let peer = contestant("peer", Role::Peer, true, false);
        assert!(judged(&plan(&["2t"], vec![peer]), &[]).is_empty(), "without ours no bar");
        let ours = contestant("ours", Role::Default, true, true);
        let alone = plan(&["2t-0ns-tight-quiet"], vec![ours]);
        let met = judged(&alone, &[vec![figures(1.0, 1.0)]]);
        assert_eq!(met, [Some(true), None, Some(true), None, None, None]);
    }
}
