//! Gangs that take turns on all processors, against as many groups of threads without coordination.
//! The figure is the time of the crossings of all groups together, by the work between two
//! crossings.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use stanchion_gang::barrier::{Barrier, Blocking, CoResident, TwoPhase};
use stanchion_gang::{GangExecutor, Waiter};
use stanchion_machine::wait::Spin;

use super::crossing::{self, Member};
use super::{ROUNDS, in_words};
use crate::cell::{Against, Cell, Column, Contestant};
use crate::race::measure;
use crate::report::{Report, Row, Table, Value};
use crate::work::Work;
use crate::{Effort, Options};

/// The number of members of each gang, and of processors of the executor.
const MEMBERS: usize = 2;
/// The numbers of gangs.
const GANGS: [usize; 4] = [1, 2, 3, 4];
/// The times of work between two crossings, in nanoseconds.
const GRAINS: [u64; 4] = [0, 1_000, 10_000, 50_000];

/// The column of a run's figures.
const COLUMNS: &[Column] = &[Column::median("ns", 0)];

/// The time of a run.
const LASTING: Duration = Duration::from_millis(60);

/// Measures the time of one crossing. The arguments are the number of groups, the work between two
/// crossings in nanoseconds, and the time of the run.
type Run = fn(usize, u64, Duration) -> f64;

/// The ways to run groups.
const ENTRANTS: [(&str, Run); 5] = [
    (GANGS_THAT_SPIN, gangs),
    ("threads that spin", threads::<Spinning>),
    (THREADS_THAT_BLOCK, threads::<Waiter<Arc<Blocking>>>),
    ("threads, TwoPhase", threads::<Waiter<Arc<TwoPhase>>>),
    ("threads, CoResident", threads::<Waiter<Arc<CoResident>>>),
];

/// The two ways that are drawn against each other.
const GANGS_THAT_SPIN: &str = "gangs that spin";
const THREADS_THAT_BLOCK: &str = "threads, Blocking";

/// The members of one group.
trait Group: Member + Send + Sized {
    fn members() -> Vec<Self>;
}

impl<B: Barrier> Group for Waiter<Arc<B>>
where
    Self: Member + Send,
{
    fn members() -> Vec<Self> {
        Waiter::all(Arc::new(B::with_members(MEMBERS).expect("few")))
    }
}

/// A member that never yields its processor.
struct Spinning(Waiter<Arc<stanchion_gang::barrier::Central>>);

impl Member for Spinning {
    fn cross(&mut self) {
        let crossed = self.0.wait_with(&mut Spin, stanchion_machine::clock::Deadline::NEVER);
        let _ = crossed.expect("no member leaves");
    }
}

impl Group for Spinning {
    fn members() -> Vec<Self> {
        Waiter::<Arc<_>>::members().into_iter().map(Self).collect()
    }
}

/// A member of a gang.
struct InGang<'a>(&'a mut stanchion_gang::Member);

impl Member for InGang<'_> {
    fn cross(&mut self) {
        self.0.barrier().expect("the gang runs");
    }
}

fn threads<G: Group>(groups: usize, grain: u64, lasting: Duration) -> f64 {
    let work = Work::of(grain);
    let figures: Vec<_> = thread::scope(|scope| {
        let mut handles = Vec::new();
        for _ in 0..groups {
            let last = Arc::new(AtomicU64::new(u64::MAX));
            for (index, mut member) in G::members().into_iter().enumerate() {
                let last = last.clone();
                handles.push(scope.spawn(move || {
                    crossing::take_part(&mut member, index == 0, work, &last, lasting)
                }));
            }
        }
        handles.into_iter().map(|handle| handle.join().expect("a member ended")).collect()
    });
    each(&figures)
}

fn gangs(groups: usize, grain: u64, lasting: Duration) -> f64 {
    let work = Work::of(grain);
    let executor =
        GangExecutor::builder().processors(MEMBERS).pin(true).build().expect("few seats");
    let handles: Vec<_> = (0..groups)
        .map(|_| {
            let last = AtomicU64::new(u64::MAX);
            let member = move |member: &mut stanchion_gang::Member| {
                let leads = member.index() == 0;
                Ok(crossing::take_part(&mut InGang(member), leads, work, &last, lasting))
            };
            executor.spawn(MEMBERS, member).expect("there is a slot")
        })
        .collect();
    let figures: Vec<_> =
        handles.into_iter().flat_map(|gang| gang.join().expect("it ended well")).collect();
    each(&figures)
}

/// Returns the time of a crossing, of all groups together.
fn each(figures: &[(u64, f64, Vec<f64>)]) -> f64 {
    1.0 / figures
        .iter()
        .map(|(crossings, nanos, _)| *crossings as f64 / nanos.max(1.0))
        .sum::<f64>()
}

fn cell(groups: usize, grain: u64) -> Cell {
    let contestants = ENTRANTS.map(|(name, run)| {
        Contestant::new(name, move |effort: Effort| vec![run(groups, grain, effort.time(LASTING))])
    });
    let plural = if groups == 1 { "" } else { "s" };
    let title = format!("gangs, {groups} group{plural} of {MEMBERS}, grain {}", in_words(grain));
    Cell::new(title, COLUMNS, Against::Best, contestants.into()).sampled(0.5)
}

/// Returns all cells.
pub(crate) fn cells() -> Vec<Cell> {
    GANGS.into_iter().flat_map(|groups| GRAINS.map(|grain| cell(groups, grain))).collect()
}

/// Runs all cells. The report has a table and a drawing for each number of groups.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    let mut report = Report::default();
    for groups in GANGS {
        let mut rows: Vec<(String, [f64; GRAINS.len()])> = Vec::new();
        for (index, grain) in GRAINS.into_iter().enumerate() {
            let Some(cell) = cell(groups, grain).selected(options) else { continue };
            progress(&cell.title);
            let figures = measure(&cell, ROUNDS, options).figures;
            for (contestant, figures) in cell.contestants.iter().zip(figures) {
                let known = rows.iter().position(|(name, _)| *name == contestant.name);
                let row = known.unwrap_or_else(|| {
                    rows.push((contestant.name.clone(), [f64::NAN; GRAINS.len()]));
                    rows.len() - 1
                });
                rows[row].1[index] = figures[0];
            }
        }
        if rows.is_empty() {
            continue;
        }
        report.table(Table {
            title: format!("{groups} of {MEMBERS}: ns by the crossings of all groups together"),
            columns: GRAINS.map(in_words).into(),
            rows: rows
                .iter()
                .map(|(name, figures)| Row {
                    name: name.clone(),
                    values: figures.map(|figure| Value::number(figure, 0)).into(),
                })
                .collect(),
        });
        let of = |name| rows.iter().find(|(known, _)| known == name).map(|(_, figures)| *figures);
        if let (Some(gangs), Some(threads)) = (of(GANGS_THAT_SPIN), of(THREADS_THAT_BLOCK)) {
            report.text(drawing(groups, gangs, threads));
        }
    }
    report
}

/// Draws the factor between gangs and threads that block at each grain, with a mark for each fifth
/// of a doubling, and the grain at which both are even.
fn drawing(groups: usize, gangs: [f64; 4], threads: [f64; 4]) -> String {
    let ahead: [f64; 4] = std::array::from_fn(|grain| (threads[grain] / gangs[grain]).log2());
    let mut lines =
        vec![format!("{groups} groups: {GANGS_THAT_SPIN} against {THREADS_THAT_BLOCK}")];
    for (grain, ahead) in GRAINS.into_iter().zip(ahead).filter(|(_, ahead)| !ahead.is_nan()) {
        let bar = "#".repeat((ahead.abs() * 5.0).round().min(30.0) as usize);
        let (left, right) = if ahead < 0.0 { (bar, String::new()) } else { (String::new(), bar) };
        let (grain, factor) = (in_words(grain), ahead.abs().exp2());
        let winner = if ahead < 0.0 { "threads" } else { "gangs" };
        lines.push(format!("{grain:>9} {left:>30}|{right:<30} {winner} {factor:.2} times as fast"));
    }
    lines.push(match even_at(ahead) {
        Some(nanos) => format!("they cross at {:.1} µs", nanos / 1e3),
        None => "they do not cross".to_owned(),
    });
    lines.join("\n")
}

/// Returns the grain in ns at which `ahead` first falls below 0. `ahead` has a logarithm for each
/// of [`GRAINS`]. Between two grains it is taken as linear in the logarithm of the grain. After the
/// first grain, which is 0, it is taken as linear in the grain.
fn even_at(ahead: [f64; 4]) -> Option<f64> {
    (1..GRAINS.len()).find(|&grain| ahead[grain - 1] >= 0.0 && ahead[grain] < 0.0).map(|grain| {
        let part = ahead[grain - 1] / (ahead[grain - 1] - ahead[grain]);
        let (from, to) = (GRAINS[grain - 1] as f64, GRAINS[grain] as f64);
        if from == 0.0 { to * part } else { from * (to / from).powf(part) }
    })
}
