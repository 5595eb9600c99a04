//! Recorded waits as pictures and tables.

use super::paper;
use super::recording::{LONGEST_SPIN, Recorded, Taken};
use stanchion_study::context::Stop;
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{count, grouped, percent};

/// The paper's unit of 16 spins, as a multiple of C.
const UNIT: f64 = 0.08;
/// The paper's 63 units. The last has all longer waits.
const UNITS: usize = 63;

/// Draws the distribution of a program's waits, as figures 1 to 4 do.
pub(crate) fn histogram(recorded: &Recorded) -> Picture {
    let width = UNIT * recorded.pool.cost;
    let [mut spun, mut blocked] = [vec![0.0; UNITS], vec![0.0; UNITS]];
    for lock in &recorded.pool.locks {
        for (sums, counts) in [&mut spun, &mut blocked].into_iter().zip(lock.bins(width, UNITS)) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let series = |name: &str, counts: Vec<f64>| {
        let ends = (1..=UNITS).map(|unit| unit as f64 * UNIT);
        Series::new(name, ends.zip(counts).filter(|point| point.1 > 0.0))
    };
    Picture {
        title: format!(
            "{}: the waits for {}; the last bar has all longer than {} C",
            recorded.name,
            count(recorded.pool.locks.len(), "lock"),
            (UNITS - 1) as f64 * UNIT
        ),
        shape: Shape::Bars { width: UNIT, bars: UNITS },
        x: Axis::linear(format!(
            "length of the wait, in C = {}",
            recorded.time(recorded.pool.cost)
        )),
        y: Axis::linear("waits"),
        series: vec![series("spun through", spun), series("blocked", blocked)],
    }
}

/// Returns a table of the lengths of the waits, one program a row.
pub(crate) fn lengths(programs: &[&Recorded]) -> Result<Table, Stop> {
    let mut rows = Vec::new();
    for recorded in programs {
        let (waits, all) = (recorded.pool.waits(), recorded.all()?);
        let quantile = |q: f64| {
            let mut below = 0.0;
            let reached = all.points().iter().find(|point| {
                below += point.1;
                below >= q * all.total_weight()
            });
            reached.map_or_else(String::new, |point| recorded.time(point.0))
        };
        let cost = recorded.pool.cost;
        rows.push(vec![
            recorded.name.clone(),
            recorded.pool.locks.len().to_string(),
            grouped(waits),
            recorded.time(cost),
            percent(1.0 - all.share_above(cost)),
            percent(1.0 - all.share_above(LONGEST_SPIN * cost)),
            quantile(0.5),
            quantile(0.99),
            quantile(1.0),
        ]);
    }
    let columns = [
        "program",
        "locks waited for",
        "waits",
        "C",
        "up to C",
        "up to 5.04 C",
        "median",
        "99 %",
        "longest",
    ];
    Ok(Table {
        title: "How long the waits were".to_owned(),
        columns: columns.map(str::to_owned).into(),
        rows,
    })
}

/// Returns the notes on the programs and on the way of recording.
pub(crate) fn notes(programs: &[&Recorded]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let own: Vec<&str> = programs
        .iter()
        .filter(|recorded| recorded.how.is_none())
        .map(|recorded| recorded.what.as_str())
        .collect();
    if !own.is_empty() {
        notes.push(format!("{}. Threads are pinned.", own.join(". ")));
        notes.push(
            "As in the paper's section 3, every wait may spin for 5.04 C (1008 of the paper's spins, where C is 200) before it blocks, and only \
             contended acquisitions are counted. A wait lasts until the thread has the lock, or, if it blocked, until the release that woke it. C is half \
             of the time in which two threads on one processor wake each other by turns."
                .to_owned(),
        );
    }
    let others = programs.iter().filter_map(|recorded| Some((recorded.how?, &recorded.what)));
    let others: Vec<(&str, &String)> = others.collect();
    for group in others.chunk_by(|one, other| one.0 == other.0) {
        let what: Vec<&str> = group.iter().map(|(_, what)| what.as_str()).collect();
        notes.push(format!("{}. {}", what.join(". "), group[0].0));
    }
    notes
}

/// Returns the outcome for one program: its histogram, and `verdict` of the share of waits that
/// were longer than C.
pub(crate) fn one(taken: Taken, verdict: fn(f64) -> Verdict) -> Result<Outcome, Stop> {
    let recorded = match taken {
        Ok(recorded) => recorded,
        Err(why) => return Ok(Outcome::new(Verdict::NotRun(why))),
    };
    if let Some(why) = recorded.too_few() {
        return Ok(Outcome::new(Verdict::NotJudged(why)));
    }
    let (all, cost) = (recorded.all()?, recorded.pool.cost);
    let programs = [recorded.as_ref()];
    let long = all.share_above(cost);
    let paper = paper::offline_of(recorded.beside)
        .map_or_else(|| "–".to_owned(), |row| percent(row.blocks));
    let beside = recorded.beside;
    Ok(Outcome {
        comparisons: vec![
            Comparison::new("C", "200 µs (about 200 spins)", recorded.time(cost)),
            Comparison::new(
                format!("waits longer than C; the paper's are of {beside}"),
                paper,
                percent(long),
            ),
            Comparison::new(
                "waits longer than 5.04 C",
                "not given",
                percent(all.share_above(LONGEST_SPIN * cost)),
            ),
        ],
        pictures: vec![histogram(&recorded)],
        tables: vec![lengths(&programs)?],
        notes: notes(&programs),
        ..Outcome::new(verdict(long))
    })
}
