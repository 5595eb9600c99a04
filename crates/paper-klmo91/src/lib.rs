//! Karlin, Li, Manasse, Owicki: Empirical studies of competitive spinning for a shared-memory
//! multiprocessor, 1991.
//!
//! ```text
//! external ──┐
//! programs ──┴─recorded──▶ waits, lock by lock ─┬▶ fig1 … fig4 (show)
//!    │                                          └▶ table1, table2 (waits::judge)
//!    └────────────race──▶ elapsed times ──▶ table3, table4
//! ```
//!
//! All of them stand beside the figures in `paper`. The programs run on this computer (`real`) and
//! in virtual time (`simulated`), from one source.

mod build;
mod external;
mod fig1;
mod fig2;
mod fig3;
mod fig4;
mod paper;
mod place;
mod race;
mod real;
mod recorded;
mod recording;
mod regsim;
mod server;
mod show;
mod simulated;
pub mod stand_in;
mod stated;
mod table1;
mod table2;
mod table3;
mod table4;
pub mod waits;

use std::sync::Arc;
use std::time::Duration;

use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};

use crate::waits::pool::Pool;
use recorded::Source;
use recording::Recorded;
use stanchion_competitive::waits::Recording;
use stanchion_study::experiment::Experiment;
use stanchion_study::outcome::{Outcome, Verdict};
pub use stated::{points, stated};

/// The paper's figures and tables, in its order.
pub const EXPERIMENTS: &[Experiment] = &[
    fig1::EXPERIMENT,
    fig2::EXPERIMENT,
    fig3::EXPERIMENT,
    fig4::EXPERIMENT,
    table1::EXPERIMENT,
    table2::EXPERIMENT,
    table3::EXPERIMENT,
    table4::EXPERIMENT,
];

/// The paper's circuit simulator, which stands beside its figures.
pub const REGSIM: Experiment = regsim::EXPERIMENT;

/// The experiments that judge waits from files as well.
pub const TABLES_OF_WAITS: [&str; 2] = [table1::EXPERIMENT.id, table2::EXPERIMENT.id];

/// Returns the recordings that tables 1 and 2 are about, and the reasons why others were left out.
fn recordings(context: &Context) -> Result<(Vec<Arc<Recorded>>, Vec<String>), Stop> {
    context.plan(Source::ALL.len());
    let (mut recorded, mut left_out) = (Vec::new(), Vec::new());
    let mut all = Vec::new();
    for source in Source::ALL {
        all.push(recorded::of(source, context)?);
    }
    all.extend(given(context).map(|given| Ok(Arc::new(given))));
    for taken in all {
        match taken.map(|taken| (taken.too_few(), taken)) {
            Ok((None, taken)) => recorded.push(taken),
            Ok((Some(why), _)) | Err(why) => left_out.push(why),
        }
    }
    Ok((recorded, left_out))
}

/// Returns the same on a machine in virtual time.
fn simulated_recordings(
    context: &Context,
    machine: &Machine,
) -> Result<(Vec<Arc<Recorded>>, Vec<String>), Stop> {
    context.plan(simulated::SOURCES.len());
    let (mut recorded, mut left_out) = (Vec::new(), Vec::new());
    for source in simulated::SOURCES {
        let taken = simulated::of(source, context, machine)?;
        match taken.too_few() {
            None => recorded.push(taken),
            Some(why) => left_out.push(why),
        }
    }
    Ok((recorded, left_out))
}

/// Returns the outcome of a table with a row for each recorded program. `of` makes the rows.
/// `outcome` makes the rest from them, without the notes. `remark` is the last note. The table is
/// not judged if no program has enough waits.
fn table_of_waits<R>(
    (recorded, left_out): (Vec<Arc<Recorded>>, Vec<String>),
    of: impl Fn(&Recorded) -> Result<R, Stop>,
    remark: &str,
    outcome: impl FnOnce(&[R]) -> Outcome,
) -> Result<Outcome, Stop> {
    let programs: Vec<&Recorded> = recorded.iter().map(AsRef::as_ref).collect();
    if programs.is_empty() {
        return Ok(Outcome::new(Verdict::NotJudged(left_out.join("; "))));
    }
    let rows: Vec<R> = programs.iter().map(|program| of(program)).collect::<Result<_, _>>()?;
    let mut notes = show::notes(&programs);
    notes.extend(left_out.iter().map(|why| format!("Left out: {why}.")));
    notes.push(remark.to_owned());
    Ok(Outcome { notes, ..outcome(&rows) })
}

/// Returns the recordings in files that were named on the command line.
fn given(context: &Context) -> impl Iterator<Item = Recorded> {
    context.given::<Vec<Recording>>().into_iter().flatten().map(|recording| Recorded {
        name: recording.program.clone(),
        beside: "–",
        what: format!("{}: from a file", recording.program),
        elapsed: Duration::from_nanos(recording.elapsed_ns),
        processors: context.processors.len(),
        how: Some("How it was recorded, and on how many processors, the file does not say."),
        pool: Pool::of(vec![recording.clone()]),
        scale: 1.0,
    })
}

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the
/// same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stanchion_competitive::waits::{Distribution, Observation, Recording};

    use super::recording::Recorded;
    use crate::waits::pool::Pool;

    /// Made up: locks with their waits, so many of each length, of a program that ran for 1 ms on
    /// two processors where C is 1 µs.
    pub(super) fn recorded(name: &str, locks: &[(&str, &[(u64, u64)])]) -> Recorded {
        let waits = |points: &[(u64, u64)]| {
            let mut waits = Distribution::new(80);
            for &(length_ns, count) in points {
                for _ in 0..count {
                    waits.add(&Observation { length_ns, ..Observation::default() });
                }
            }
            waits
        };
        let recording = Recording {
            program: name.to_owned(),
            mutexes: None,
            cost_ns: 1_000,
            unit_ns: 80,
            elapsed_ns: 1_000_000,
            locks: locks.iter().map(|(name, points)| ((*name).to_owned(), waits(points))).collect(),
            overflow: 0,
        };
        Recorded {
            name: name.to_owned(),
            beside: "Galaxy",
            what: "made up".to_owned(),
            pool: Pool::of(vec![recording]),
            elapsed: Duration::from_millis(1),
            processors: 2,
            how: None,
            scale: 1.0,
        }
    }
}
