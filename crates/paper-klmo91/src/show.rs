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
    let verdict = judged(&recorded, verdict)?;
    pictured(&enough(&[&recorded]), |_| String::new(), verdict)
}

/// Returns the outcome for a program of others and one of ours. Both are shown. `verdict` is of the
/// program of others alone. Without it nothing is judged, because we would judge a claim by
/// sections that we have chosen.
pub(crate) fn foreign_and_ours(
    foreign: &Taken,
    ours: &Taken,
    verdict: fn(f64) -> Verdict,
) -> Result<Outcome, Stop> {
    let verdict = match (foreign, ours) {
        (Ok(foreign), _) => judged(foreign, verdict)?,
        (Err(why), Ok(ours)) => Verdict::NotJudged(format!(
            "only a program that we wrote was recorded here, {}, and it decides nothing; {why}",
            ours.name
        )),
        (Err(why), Err(too)) => Verdict::NotRun(format!("{too}; {why}")),
    };
    let recorded: Vec<&Recorded> =
        [foreign, ours].into_iter().flatten().map(AsRef::as_ref).collect();
    let of = |recorded: &Recorded| format!("{}: ", recorded.name);
    let mut outcome = pictured(&enough(&recorded), of, verdict)?;
    if !recorded.is_empty() {
        // The verdict says the same of the program of others.
        let of_ours = ours.as_ref().map_or_else(|why| Some(why.clone()), |ours| ours.too_few());
        outcome.notes.extend(of_ours.map(|why| format!("Left out: {why}.")));
        outcome.notes.push(
            "A program with “(ours)” behind its name was written for this study. It is shown, and never judged."
                .to_owned(),
        );
    }
    Ok(outcome)
}

/// Returns the `verdict` of the share of waits that were longer than C, if there are enough waits.
fn judged(recorded: &Recorded, verdict: fn(f64) -> Verdict) -> Result<Verdict, Stop> {
    Ok(match recorded.too_few() {
        Some(why) => Verdict::NotJudged(why),
        None => verdict(recorded.all()?.share_above(recorded.pool.cost)),
    })
}

/// Returns the recordings that have enough waits.
fn enough<'r>(recorded: &[&'r Recorded]) -> Vec<&'r Recorded> {
    recorded.iter().copied().filter(|recorded| recorded.too_few().is_none()).collect()
}

/// Returns an outcome with the figures of all programs beside the paper's. `of` begins the names of
/// a program's figures.
fn pictured(
    programs: &[&Recorded],
    of: fn(&Recorded) -> String,
    verdict: Verdict,
) -> Result<Outcome, Stop> {
    let mut outcome = Outcome::new(verdict);
    for recorded in programs {
        let of = of(recorded);
        let (all, cost) = (recorded.all()?, recorded.pool.cost);
        let paper = paper::offline_of(recorded.beside)
            .map_or_else(|| "–".to_owned(), |row| percent(row.blocks));
        let beside = recorded.beside;
        outcome.comparisons.extend([
            Comparison::new(format!("{of}C"), "200 µs (about 200 spins)", recorded.time(cost)),
            Comparison::new(
                format!("{of}waits longer than C; the paper's are of {beside}"),
                paper,
                percent(all.share_above(cost)),
            ),
            Comparison::new(
                format!("{of}waits longer than 5.04 C"),
                "not given",
                percent(all.share_above(LONGEST_SPIN * cost)),
            ),
        ]);
        outcome.pictures.push(histogram(recorded));
    }
    if !programs.is_empty() {
        outcome.tables.push(lengths(programs)?);
        outcome.notes = notes(programs);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::recorded;
    use super::*;

    /// A program of which so many waits are longer than C, and as many are shorter.
    fn program(name: &str, waits: u64) -> Taken {
        let points: &[(u64, u64)] = &[(100, waits), (1_000_000, waits)];
        Ok(Arc::new(recorded(name, &[("queue", points)])))
    }

    fn missing(name: &str) -> Taken {
        Err(format!("{name} not found: install it"))
    }

    fn outcome(foreign: &Taken, ours: &Taken) -> Outcome {
        foreign_and_ours(foreign, ours, |long| Verdict::when(long > 0.4, "the share".to_owned()))
            .unwrap()
    }

    #[test]
    fn a_program_of_ours_alone_is_shown_and_not_judged() {
        let outcome = outcome(&missing("memcached"), &program("server (ours)", 100));
        assert_eq!(outcome.verdict.name(), "not judged");
        let because = outcome.verdict.because();
        assert!(because.contains("server (ours)") && because.contains("install it"), "{because}");
        assert_eq!((outcome.pictures.len(), outcome.comparisons.len()), (1, 3));
        assert!(outcome.pictures[0].title.starts_with("server (ours): "));
        assert!(outcome.comparisons.iter().all(|row| row.what.starts_with("server (ours): ")));
        assert!(outcome.notes.iter().any(|note| note.contains("never judged")));
    }

    #[test]
    fn a_program_of_others_decides_beside_one_of_ours() {
        let foreign = program("memcached", 100);
        for ours in [program("server (ours)", 100), program("server (ours)", 1), missing("shim")] {
            let outcome = outcome(&foreign, &ours);
            assert_eq!(outcome.verdict, Verdict::Holds("the share".to_owned()));
            assert!(outcome.pictures[0].title.starts_with("memcached: "));
            let shown = ours.is_ok_and(|ours| ours.too_few().is_none());
            assert_eq!(outcome.pictures.len(), 1 + usize::from(shown));
            let left_out = outcome.notes.iter().any(|note| note.starts_with("Left out: "));
            assert_eq!(left_out, !shown);
        }
        // Figures of one name would stand in one row.
        let outcome = outcome(&foreign, &program("server (ours)", 100));
        let mut names: Vec<_> = outcome.comparisons.iter().map(|row| row.what.clone()).collect();
        names.dedup();
        assert_eq!(names.len(), 6);
    }

    #[test]
    fn a_program_of_others_with_few_waits_is_not_replaced_by_ours() {
        let outcome = outcome(&program("memcached", 10), &program("server (ours)", 100));
        assert_eq!(outcome.verdict.name(), "not judged");
        assert!(outcome.verdict.because().starts_with("memcached: 20 waits"));
        assert!(outcome.pictures[0].title.starts_with("server (ours): "));
    }

    #[test]
    fn without_any_program_nothing_was_run() {
        let outcome = outcome(&missing("memcached"), &missing("shim"));
        assert_eq!(outcome.verdict.name(), "not run");
        assert!(outcome.pictures.is_empty());
    }
}
