//! Table 2: the behaviour of the off-line optimum on the recorded waits.
//!
//! Rule of the verdict: *when spinning is the optimal choice, the average time spent spinning
//! (22–64 µs) is considerably less than the time for a context switch (200 µs)*: *holds* if it is
//! at most half of C for every program; else *differs*. A program with fewer than 100 waits is left
//! out; *not judged* if that leaves none.
//!
//! Beside it stands, for each program, whether more than 90 % of its contended waits had two
//! contenders, the paper's assumption of section 7.

use std::sync::Arc;

use super::recording::{Recorded, unsound};
use super::{paper, recordings, simulated, simulated_recordings, table_of_waits};
use stanchion_formulas::competitive::optimal_offline;
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Comparison, Outcome, Table, Verdict};
use stanchion_study::units::{nanos, percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "klmo91/table2",
    paper: Paper::Klmo91,
    title: "How often the off-line optimum blocks, and its mean spin",
    claim: "Where the off-line optimum spins, its mean spin is considerably less than C.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["firefly"], run_simulated)),
    },
};

/// The paper's assumption about contenders.
const MOSTLY_TWO: f64 = 0.9;

/// A row of the table.
#[derive(Clone, Debug)]
struct Row {
    /// The label of the program.
    name: String,
    /// The paper's row that stands beside it.
    beside: &'static str,
    /// C in nanoseconds.
    cost: f64,
    /// The same as [`Recorded::scale`].
    scale: f64,
    /// The share of waits in which the optimum blocks.
    blocks: f64,
    /// The optimum's mean spin where it spins, in nanoseconds.
    spin: Option<f64>,
    /// The optimum's share of the time that the program's processors had.
    elapsed: f64,
    /// The share of waits with two contenders.
    two: Option<f64>,
}

impl Row {
    fn of(recorded: &Recorded) -> Result<Self, Stop> {
        let (all, cost) = (recorded.all()?, recorded.pool.cost);
        // The optimum decides wait by wait, so the locks need not be told apart.
        let offline = optimal_offline(&all, cost).map_err(unsound)?;
        let had = recorded.elapsed.as_nanos() as f64 * recorded.processors as f64;
        Ok(Self {
            name: recorded.name.clone(),
            beside: recorded.beside,
            cost,
            scale: recorded.scale,
            blocks: offline.share_blocked,
            spin: offline.mean_spin,
            elapsed: offline.cost * all.total_weight() / had,
            two: recorded.share_of_two(),
        })
    }

    fn spin_of_cost(&self) -> Option<f64> {
        self.spin.map(|spin| spin / self.cost)
    }
}

/// The note on the method, beside those on the programs.
const REMARK: &str = "\
    The optimum's share is its cost over all waits divided by the elapsed time and by the number of processors; the paper does not say whether it \
    divides by the latter. The paper's row for Hanoi does not go with its table 1: 16.5 % blocked would make always-block cost 3.77 times the \
    optimum, and table 1 has 2.997.";

fn run(context: &Context) -> Result<Outcome, Stop> {
    outcome(recordings(context)?)
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let outcome = outcome(simulated_recordings(context, machine)?)?;
    Ok(Outcome { verdict: simulated::judged(machine, outcome.verdict), ..outcome })
}

fn outcome(recordings: (Vec<Arc<Recorded>>, Vec<String>)) -> Result<Outcome, Stop> {
    table_of_waits(recordings, Row::of, REMARK, |rows| Outcome {
        comparisons: contenders(rows),
        tables: vec![table(rows)],
        ..Outcome::new(verdict(rows))
    })
}

fn verdict(rows: &[Row]) -> Verdict {
    let of_cost = |row: &Row| row.spin_of_cost().map(|share| (row.name.clone(), share));
    let worst = rows.iter().filter_map(of_cost).max_by(|one, other| one.1.total_cmp(&other.1));
    let Some((name, worst)) = worst else {
        return Verdict::NotJudged("the off-line optimum never spins here".to_owned());
    };
    Verdict::when(
        worst <= 0.5,
        format!(
            "where the optimum spins, its mean spin is at most {} C, for {name}; 0.11 to 0.32 C in the paper",
            significant(worst)
        ),
    )
}

/// Compares the share of waits with two contenders with the paper's assumption that they are the
/// rule.
fn contenders(rows: &[Row]) -> Vec<Comparison> {
    rows.iter()
        .map(|row| {
            let here = match row.two {
                Some(two) if two > MOSTLY_TWO => format!("{}: so it is", percent(two)),
                Some(two) => format!("{}: it is not so", percent(two)),
                None => "not recorded".to_owned(),
            };
            let paper = match row.beside {
                "Regsim" | "Hanoi" => "more than 90 %",
                _ => "suspected to be more than 90 %",
            };
            Comparison::new(
                format!("{}: contended waits with two contenders", row.name),
                paper,
                here,
            )
        })
        .collect()
}

fn table(rows: &[Row]) -> Table {
    let columns = ["program", "optimum blocks", "mean spin", "in C", "optimum's share of the time"];
    let mut cells = Vec::new();
    let none = || "–".to_owned();
    for row in rows {
        cells.push(vec![
            row.name.clone(),
            percent(row.blocks),
            row.spin.map_or_else(none, |spin| nanos(spin * row.scale)),
            row.spin_of_cost().map_or_else(none, significant),
            percent(row.elapsed),
        ]);
        if let Some(paper) = paper::offline_of(row.beside) {
            cells.push(vec![
                format!("paper: {}", row.beside),
                percent(paper.blocks),
                nanos(paper.spin * 1e3),
                significant(paper.spin / paper::SWITCH),
                paper.elapsed.map_or_else(none, percent),
            ]);
        }
    }
    Table {
        title: "What the off-line optimum does".to_owned(),
        columns: columns.map(str::to_owned).into(),
        rows: cells,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_from_made_up_waits() {
        let waits: &[(u64, u64)] = &[(160, 60), (400, 20), (50_000, 20)];
        let recorded = super::super::tests::recorded("made up", &[("queue", waits)]);
        let row = Row::of(&recorded).unwrap();
        assert!((row.blocks - 0.2).abs() < 1e-12);
        assert!((row.spin.unwrap() - 220.0).abs() < 1e-9);
        // (60·160 + 20·400 + 20·1000) ns of 1 ms on 2 processors.
        assert!((row.elapsed - 37_600.0 / 2e6).abs() < 1e-12);
        assert_eq!(row.two, Some(1.0));
    }

    #[test]
    fn half_of_c_is_the_most() {
        let recorded = super::super::tests::recorded("made up", &[("queue", &[(100, 100)])]);
        let row = Row::of(&recorded).unwrap();
        let with = |spin| verdict(&[row.clone(), Row { spin, ..row.clone() }]);
        assert_eq!(with(Some(500.0)).name(), "holds");
        assert_eq!(with(Some(501.0)).name(), "differs");
        assert_eq!(with(None).name(), "holds");
        let never = verdict(&[Row { spin: None, ..row }]);
        assert_eq!(never.name(), "not judged");
    }

    #[test]
    fn the_assumption_about_contenders_is_judged_for_each() {
        let recorded = super::super::tests::recorded("made up", &[("queue", &[(100, 100)])]);
        let row = Row::of(&recorded).unwrap();
        let said = |two| contenders(&[Row { two, ..row.clone() }]).remove(0).here;
        assert!(said(Some(0.91)).contains("so it is"));
        assert!(said(Some(0.9)).contains("not so"));
        assert_eq!(said(None), "not recorded");
    }
}
