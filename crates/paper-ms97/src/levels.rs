//! The cost of a multiprogramming level for each structure, by the processor time of its threads.
//!
//! The figures show elapsed time, which grows with the level by construction: at level 2 a thread
//! has half of its processor. Here time is that of the threads' own processor clocks. So the time
//! that the pseudo-scheduler, the system or another program took from a thread does not count. The
//! rest is what its threads lost by one another's absence: spinning for a lock while its holder was
//! stopped, an operation done again, a line that travelled once more.
//!
//! | | threads | applications |
//! | --- | --- | --- |
//! | level 1 | one on each processor, pinned | this one |
//! | level 2, level 3 | the same | one or two others, for a quantum of 10 ms each |
//! | crowded | four on each processor, pinned | this one: the system's own scheduler takes turns |
//!
//! The module [`stanchion_multiprogramming`] plays the other applications. Each condition is
//! measured with the paper's 6 µs of other work after each operation and with none. A window is
//! longer at a higher level, so that threads have as much time in each.
//!
//! Why processor time alone will not do: the speed of a processor depends on the activity of its
//! neighbour. Two that share a core slow each other down, and a stopped thread leaves its neighbour
//! the core: an empty loop took from 6 µs to 10 µs here. So each thread runs an empty loop of known
//! length now and then, and its time is divided by the loop's.
//!
//! Rule of the verdict: *holds* if
//! 1. no structure without locks loses 15 % or more against level 1, at level 2, at level 3 or
//!    crowded, with other work or without, and
//! 2. in each family some ordinary lock, where it loses most, loses more than any structure without
//!    locks where that one does;
//!
//! else *differs*. *not judged* with one processor, nor if what a judged structure loses is not
//! known precisely enough ([`Precision`]).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use stanchion_formulas::Random;
use stanchion_machine::topology::pin;
use stanchion_multiprogramming::Multiprogramming;

use super::grid::Kind;
use super::real::{self, Loop, REST, Row, Subject};
use super::{judge, peers};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::measure::{Precision, Repeated, StartLine, median};
use stanchion_study::outcome::{Comparison, Outcome, Table, Verdict};
use stanchion_study::units::{percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/levels",
    paper: Paper::Ms97,
    title: "What a multiprogramming level costs, by processor time granted",
    claim: "Structures without locks are as fast in the time they are given whatever the multiprogramming level; ordinary locks are not.",
    bodies: Bodies::real(
        run,
        "figures 1 to 4 have it, in the comparison “time per processor time granted”",
    ),
};

/// The loss of a structure without locks must be below this share.
const MOST: f64 = 0.15;

/// Other applications and threads.
#[derive(Clone, Copy, Debug)]
struct Condition {
    /// The heading of its columns.
    name: &'static str,
    /// The number of applications.
    level: u32,
    /// Threads on each processor.
    threads: usize,
}

/// The conditions. The others are compared with the first.
const CONDITIONS: [Condition; 4] = [
    Condition { name: "level 1", level: 1, threads: 1 },
    Condition { name: "level 2", level: 2, threads: 1 },
    Condition { name: "level 3", level: 3, threads: 1 },
    Condition { name: "crowded", level: 1, threads: 4 },
];
/// Other work after each operation.
const RESTS: [&str; 2] = ["6 µs of other work", "no other work"];

/// The structures of a figure, and their peers, which are measured and not judged.
struct Family {
    /// The kind of structure.
    name: &'static str,
    /// The structures of the figure.
    rows: &'static [Row],
    /// Structures of other crates.
    peers: &'static [Row],
}

const FAMILIES: [Family; 4] = [
    Family { name: "queue", rows: real::QUEUES, peers: peers::QUEUES },
    Family { name: "stack", rows: real::STACKS, peers: peers::STACKS },
    Family { name: "heap", rows: real::HEAPS, peers: peers::HEAPS },
    Family { name: "counter", rows: real::COUNTERS, peers: peers::COUNTERS },
];

/// The measurements of a structure.
#[derive(Clone, Debug)]
struct Line {
    /// The kind of structure: a queue, a stack, a heap or a counter.
    family: &'static str,
    /// The label in tables.
    name: &'static str,
    /// The locks of the structure, if it has any.
    kind: Kind,
    /// Set for a structure of the figure. Peers are shown only.
    judged: bool,
    /// Nanoseconds of processor time for a turn at level 1, by other work.
    nanos: [f64; RESTS.len()],
    /// The growth of a turn's time against level 1, by other work and condition.
    losses: [[f64; CONDITIONS.len()]; RESTS.len()],
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let (lines, repeated) = measure(context)?;
    Ok(Outcome {
        comparisons: comparisons(&lines),
        tables: RESTS.iter().enumerate().map(|(rest, name)| table(&lines, rest, name)).collect(),
        notes: vec![
            format!(
                "{} processors. Processor time is that of the threads, over that of an empty loop in the same window; a turn is an insertion and a removal, or one addition. Each \
                 condition is compared with level 1 in the same second; medians of {}.",
                context.processors.len(),
                repeated.words()
            ),
            "Less than nothing is lost where fewer threads run at once, and so compete less, than at level 1."
                .to_owned(),
            "Peers are shown and not judged. What sleeps gives its processor away, so that its losses are not all seen here."
                .to_owned(),
        ],
        ..Outcome::new(repeated.judge(verdict(&lines, context.processors.len())))
    })
}

fn verdict(lines: &[Line], processors: usize) -> Verdict {
    if processors < 2 {
        return judge::alone();
    }
    let worst = worst(lines, |line| line.kind == Kind::NonBlocking);
    let steady = worst.as_ref().is_none_or(|worst| worst.loss < MOST);
    let contests = contests(lines);
    let worse = contests.iter().filter(|(_, ordinary, free)| ordinary.loss > free.loss).count();
    let dearest = worst.map_or_else(|| "no structure".to_owned(), |worst| worst.to_string());
    Verdict::when(
        steady && worse == contests.len(),
        format!(
            "without locks, {dearest} loses most; an ordinary lock loses more than all without locks in {worse} of {} families",
            contests.len()
        ),
    )
}

/// The largest loss of a structure.
struct Worst<'a> {
    /// The growth of a turn's processor time against level 1, as a share.
    loss: f64,
    /// The structure.
    line: &'a Line,
    /// The index in [`RESTS`] of the other work with which it lost most.
    rest: usize,
    /// The index in [`CONDITIONS`] of the condition in which it lost most.
    condition: usize,
}

impl fmt::Display for Worst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { loss, line, rest, condition } = self;
        let (condition, rest) = (CONDITIONS[*condition].name, RESTS[*rest]);
        write!(f, "{} ({}, {condition}, {rest}: {})", line.name, line.family, change(*loss))
    }
}

/// Returns the largest loss of any judged structure that `chosen` accepts.
fn worst(lines: &[Line], chosen: impl Fn(&Line) -> bool) -> Option<Worst<'_>> {
    let lines = lines.iter().filter(|line| line.judged && chosen(line));
    let cells = lines.flat_map(|line| {
        let at = move |rest: usize, condition: usize| Worst {
            loss: line.losses[rest][condition],
            line,
            rest,
            condition,
        };
        (0..RESTS.len()).flat_map(move |rest| (1..CONDITIONS.len()).map(move |c| at(rest, c)))
    });
    cells.max_by(|one, other| one.loss.total_cmp(&other.loss))
}

/// Returns for each family the ordinary lock that loses most, and the structure without locks that
/// loses most.
fn contests(lines: &[Line]) -> Vec<(&'static str, Worst<'_>, Worst<'_>)> {
    let contest = |family: &Family| {
        let worst = |kind| worst(lines, |line| line.family == family.name && line.kind == kind);
        Some((family.name, worst(Kind::Ordinary)?, worst(Kind::NonBlocking)?))
    };
    FAMILIES.iter().filter_map(contest).collect()
}

fn comparisons(lines: &[Line]) -> Vec<Comparison> {
    let rows = contests(lines).into_iter().flat_map(|(family, ordinary, free)| {
        let row = |kind, paper, worst: Worst<'_>| {
            let what = format!("{family}: what the dearest {kind} costs, by processor time");
            Comparison::new(what, paper, worst.to_string())
        };
        [
            row("ordinary lock", "“degrades significantly”", ordinary),
            row("structure without locks", "“relatively unchanged”", free),
        ]
    });
    rows.collect()
}

fn change(loss: f64) -> String {
    if loss < 0.0 {
        format!("gains {}", percent(-loss))
    } else {
        format!("loses {}", percent(loss))
    }
}

fn table(lines: &[Line], rest: usize, name: &str) -> Table {
    let mut columns = vec!["structure".to_owned(), "ns at level 1".to_owned()];
    columns.extend(CONDITIONS[1..].iter().map(|condition| condition.name.to_owned()));
    let row = |line: &Line| {
        let losses = (1..CONDITIONS.len())
            .map(|condition| format!("{:+.1} %", 100.0 * line.losses[rest][condition]));
        [format!("{}: {}", line.family, line.name), significant(line.nanos[rest])]
            .into_iter()
            .chain(losses)
            .collect()
    };
    Table {
        title: format!(
            "Processor time for a turn with {name}, and how much more it takes than at level 1"
        ),
        columns,
        rows: lines.iter().map(row).collect(),
    }
}

/// The time that the measuring empty loop takes on an undisturbed processor.
const MEASURE: Duration = Duration::from_micros(20);

/// Turns between two of those loops, so that they take about a tenth of the time: without other
/// work, and with it.
const TURNS: [u64; 2] = [2_000, 16];

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// The other applications and threads.
    condition: Condition,
    /// The other work after each operation, if there is any.
    rest: Option<Loop>,
    /// The loop by which the speed of the processor is measured.
    measure: Loop,
    /// The time for which a thread alone on its processor runs.
    window: Duration,
}

fn measure(context: &Context) -> Result<(Vec<Line>, Repeated), Stop> {
    let rows: Vec<(&Family, &Row, bool)> = FAMILIES
        .iter()
        .flat_map(|family| {
            let ours = family.rows.iter().map(move |row| (family, row, true));
            ours.chain(family.peers.iter().map(move |row| (family, row, false)))
        })
        .collect();
    let precision = Precision::of(EXPERIMENT.id, context);
    let decides =
        |row: &Row, judged: bool| judged && row.kind != Kind::Safe && context.processors.len() > 1;
    let (rests, measure) = ([Some(Loop::lasting(REST)), None], Loop::lasting(MEASURE));
    let cells = CONDITIONS.len() * rests.len();
    let deciding = rows.iter().filter(|(_, row, judged)| decides(row, *judged)).count();
    context.plan(precision.steps(cells * rows.len(), cells * deciding));
    let mut nanos = vec![[const { Vec::new() }; RESTS.len()]; rows.len()];
    let mut losses =
        vec![[const { [const { Vec::new() }; CONDITIONS.len()] }; RESTS.len()]; rows.len()];
    // All structures run in turn and then again, so that a drift meets all alike. All conditions of
    // a structure run one after the other, so that any other work of the computer in that second
    // meets all of them.
    let repeated = precision.repeat(|round| {
        let mut figures = Vec::new();
        for (which, (_, row, judged)) in rows.iter().enumerate() {
            let decides = decides(row, *judged);
            if !round.measures(decides) {
                continue;
            }
            for (at, rest) in rests.into_iter().enumerate() {
                let mut alone = None;
                for (condition, losses) in CONDITIONS.into_iter().zip(&mut losses[which][at]) {
                    let window = context.window(20, 200) * condition.level;
                    let setting = Setting { condition, rest, measure, window };
                    let took = per_turn(context, row, setting)?;
                    let growth = took / *alone.get_or_insert(took);
                    losses.push(growth - 1.0);
                    figures.extend(decides.then_some(growth));
                    context.step()?;
                }
                nanos[which][at].extend(alone);
            }
        }
        Ok(figures)
    })?;
    let line = |(which, (family, row, judged)): (usize, &(&Family, &Row, bool))| Line {
        family: family.name,
        name: row.name,
        kind: row.kind,
        judged: *judged,
        nanos: nanos[which].each_ref().map(|runs| median(runs.clone())),
        losses: losses[which]
            .each_ref()
            .map(|cells| cells.each_ref().map(|runs| median(runs.clone()))),
    };
    Ok((rows.iter().enumerate().map(line).collect(), repeated))
}

/// Returns the nanoseconds of processor time for a turn on a new structure.
fn per_turn(context: &Context, row: &Row, setting: Setting) -> Result<f64, Stop> {
    let others = Multiprogramming::level(setting.condition.level).start();
    let others = others.map_err(|refused| Stop::Failed(refused.to_string()))?;
    let subject = (row.make)(0);
    let (line, over) = (StartLine::default(), AtomicBool::new(false));
    let threads = context.processors.len() * setting.condition.threads;
    let shares: Vec<Share> = thread::scope(|scope| {
        let crew: Vec<_> = (0..threads)
            .map(|index| {
                let (subject, others, line, over) = (&*subject, &others, &line, &over);
                scope.spawn(move || {
                    let place = pin(context.processors[index % context.processors.len()]);
                    let member = others.join().map_err(|refused| refused.to_string());
                    line.wait();
                    let _place = place.map_err(|error| error.to_string())?;
                    let _member = member?;
                    Ok(turns(subject, setting, index as u64, over))
                })
            })
            .collect();
        line.open_when(threads);
        thread::sleep(setting.window);
        // Relaxed: it says only when to end.
        over.store(true, Ordering::Relaxed);
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Share, String>>| {
            thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        };
        crew.into_iter().map(join).collect::<Result<_, _>>()
    })
    .map_err(Stop::Failed)?;
    let sum = |of: fn(&Share) -> f64| shares.iter().map(of).sum::<f64>();
    // The factor by which the processors were slower than when the loop was measured.
    let slower = sum(|share| share.loops.as_secs_f64())
        / (MEASURE.as_secs_f64() * sum(|share| share.measured as f64));
    let turns = sum(|share| share.turns as f64);
    Ok(sum(|share| share.processor.as_nanos() as f64) / turns / slower)
}

/// The counts of one thread.
#[derive(Default)]
struct Share {
    /// Operations, each with its other work.
    turns: u64,
    /// The processor time of those operations.
    processor: Duration,
    /// Empty loops that measure the speed of the processor.
    measured: u64,
    /// The processor time of the empty loops.
    loops: Duration,
}

fn turns(subject: &dyn Subject, setting: Setting, seed: u64, over: &AtomicBool) -> Share {
    let mut random = Random::new(seed);
    let mut share = Share::default();
    let turns = TURNS[usize::from(setting.rest.is_some())];
    // Relaxed: the comment at its store says why. One round at least.
    while share.turns == 0 || !over.load(Ordering::Relaxed) {
        let began = processor_time();
        for _ in 0..turns {
            let key = random.next_u64();
            match setting.rest {
                Some(rest) => subject.turn(key, &mut || rest.run(&mut random)),
                None => subject.turn(key, &mut || ()),
            }
        }
        let between = processor_time();
        setting.measure.whole();
        share.processor += between.saturating_sub(began);
        share.loops += processor_time().saturating_sub(between);
        share.turns += turns;
        share.measured += 1;
    }
    share
}

/// Returns the processor time that this thread has had.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for the answer, and no other code refers to it.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "no clock of this thread's processor time");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ordinary lock, a structure without locks and a peer; what each loses at level 3.
    fn lines(ordinary: f64, free: f64, peer: f64) -> Vec<Line> {
        let line = |name, kind, judged, loss: f64| Line {
            family: "queue",
            name,
            kind,
            judged,
            nanos: [100.0; 2],
            losses: [[0.0, -0.1, loss, -0.1]; 2],
        };
        vec![
            line("lock", Kind::Ordinary, true, ordinary),
            line("free", Kind::NonBlocking, true, free),
            line("peer", Kind::NonBlocking, false, peer),
        ]
    }

    #[test]
    fn each_part_of_the_rule_counts() {
        let judged = |ordinary, free, peer| verdict(&lines(ordinary, free, peer), 2).name();
        assert_eq!(judged(0.2, 0.1, 0.0), "holds");
        assert_eq!(judged(0.2, -0.3, 0.0), "holds", "a gain is no loss");
        assert_eq!(judged(0.2, 0.16, 0.0), "differs", "it loses too much");
        assert_eq!(judged(0.05, 0.1, 0.0), "differs", "the ordinary lock loses less");
        assert_eq!(judged(0.2, 0.1, 5.0), "holds", "peers are not judged");
        assert_eq!(verdict(&lines(0.2, 0.1, 0.0), 1).name(), "not judged");
    }

    #[test]
    fn the_worst_is_named() {
        let lines = lines(9.0, 0.25, 7.0);
        let worst = worst(&lines, |line| line.kind == Kind::NonBlocking).unwrap();
        assert_eq!((worst.line.name, worst.condition), ("free", 2));
        assert!(worst.to_string().contains("level 3"), "{worst}");
        assert_eq!(contests(&lines).len(), 1, "one family of the four is there");
        assert_eq!(comparisons(&lines).len(), 2);
    }

    #[test]
    fn each_family_has_both_kinds() {
        for family in FAMILIES {
            for kind in [Kind::Ordinary, Kind::NonBlocking] {
                assert!(family.rows.iter().any(|row| row.kind == kind), "{}", family.name);
            }
        }
    }
}
