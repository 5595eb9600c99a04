//! `stanchion advise`: which mutex suits a program, from what its own waits were.
//!
//! ```text
//! files ──load──▶ Pool ──judge──▶ Advice ──▶ text, report.html, one picture a lock, thresholds
//! ```
//!
//! The reader is told wherever figures are shown what a recording lacks for the policy of the
//! default mutex ([`lacks`](crate::args::lacks)). The demo checks them: it has the default mutex in
//! a second run, and adds up what its waits cost.

mod change;
mod demo;
mod had;
pub(crate) mod page;
pub(crate) mod text;
mod verdicts;
mod words;

use std::path::{Path, PathBuf};

use stanchion_competitive::policy::OptimalOnline;
use stanchion_competitive::waits::Thresholds;

use stanchion_paper_klmo91::waits::judge::{Costs, DEFAULT, FACTORS, Judged};
use stanchion_paper_klmo91::waits::pool::{self, Lock, Pool};
use verdicts::Claim;

use change::Change;
use had::Had;

use crate::args::AdviseOptions;
use crate::error::Error;
use stanchion_study::files;
use stanchion_study::output::Output;
use stanchion_study::units::count;

/// The findings about a program.
#[derive(Debug)]
pub(crate) struct Advice {
    /// The recordings, put together.
    pub(crate) pool: Pool,
    /// For each lock of the pool.
    pub(crate) locks: Vec<LockAdvice>,
    /// All locks together, at each of [`FACTORS`].
    pub(crate) all: [Costs; FACTORS.len()],
    /// The paper's claims, judged by these waits.
    pub(crate) claims: Vec<Claim>,
    /// Theorems that were found broken: mistakes of this program.
    pub(crate) broken: Vec<String>,
    /// The cost of the default mutex in the demo, as a multiple of the optimum's, by the locks'
    /// names. Nothing else can be measured.
    pub(crate) measured: Vec<(&'static str, f64)>,
    /// The changes that are advised.
    pub(crate) changes: Vec<Change>,
}

/// The findings about a lock.
#[derive(Debug)]
pub(crate) struct LockAdvice {
    /// The cost of each policy on its waits.
    pub(crate) judged: Judged,
    /// The mutexes of its program.
    pub(crate) had: Had,
    /// The best policy: a place in the columns. `None` with too few waits.
    pub(crate) chosen: Option<usize>,
    /// The best policy for it, in words.
    pub(crate) words: String,
}

/// Runs the command.
pub(crate) fn run(options: &AdviseOptions) -> Result<(), Error> {
    let recorded = if options.demo { None } else { Some(Pool::of(pool::load(&options.files)?)) };
    if let Some(pool) = recorded.as_ref().filter(|pool| pool.locks.is_empty()) {
        say_nothing(pool);
        return Ok(());
    }
    // Before two seconds are spent on the demo.
    let destination = Destination::open(options)?;
    let mut pool = match recorded {
        Some(pool) => pool,
        None => record_demo(&destination)?,
    };
    if pool.locks.is_empty() {
        say_nothing(&pool);
        return Ok(());
    }
    if let Some(cost) = options.cost_ns {
        pool.cost = cost as f64;
    }
    let mut advice = Advice::of(pool)?;
    if options.demo && options.cost_ns.is_none() {
        advice.measured = demo::measure();
    }
    for line in text::lines(&advice) {
        Output::Stdout.line(format_args!("{line}"));
    }
    destination.write(&advice)?;
    for line in text::changes(&advice) {
        Output::Stdout.line(format_args!("{line}"));
    }
    if advice.broken.is_empty() { Ok(()) } else { Err(Error::Theorem(advice.broken.join("; "))) }
}

fn record_demo(destination: &Destination) -> Result<Pool, Error> {
    Output::Stderr.line(format_args!(
        "recording {} threads that share three locks for {time} s, then measuring them with the default mutex for {time} s",
        demo::THREADS,
        time = demo::TIME.as_secs()
    ));
    let recording = demo::record();
    if let Some(path) = &destination.recording {
        files::replace(path, recording.to_json().as_bytes())?;
    }
    Ok(Pool::of(vec![recording]))
}

fn say_nothing(pool: &Pool) {
    Output::Stdout.line(format_args!(
        "{}: no thread had to wait for a recorded lock. Nothing is advised and no report written: any mutex will do",
        pool.programs.join(", ")
    ));
}

impl Advice {
    /// Judges the waits of a pool that has some.
    pub(crate) fn of(pool: Pool) -> Result<Self, Error> {
        let mut locks = Vec::with_capacity(pool.locks.len());
        let mut broken = Vec::new();
        for lock in &pool.locks {
            let judged = lock
                .waits()
                .and_then(|waits| Judged::of(&waits, &lock.arrivals(), pool.cost))
                .map_err(|source| Error::Judge { lock: lock.name.clone(), source })?;
            broken.extend(broken_in(&lock.name, &judged.costs));
            let had = Had::of(lock.mutexes.as_deref(), &lock.own_name);
            let enough = lock.count() >= words::ENOUGH && had != Had::Other;
            let chosen = enough.then(|| words::best(&judged.costs[0], had.policy()));
            let words = match chosen {
                Some(chosen) => words::advice(chosen, had, &judged, pool.cost),
                None if had == Had::Other => words::NO_MUTEX.to_owned(),
                None => words::too_few(lock.count()),
            };
            locks.push(LockAdvice { judged, had, chosen, words });
        }
        let all = std::array::from_fn(|factor| {
            Costs::together(locks.iter().map(|lock| &lock.judged.costs[factor]))
        });
        broken.extend(broken_in("all locks", &all));
        let claims = verdicts::claims(&pool, &locks, &all, &broken);
        let (measured, changes) = (Vec::new(), Vec::new());
        let mut advice = Self { pool, locks, all, claims, broken, measured, changes };
        advice.changes = change::changes(&advice);
        Ok(advice)
    }

    /// Locks with what was found about each.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&Lock, &LockAdvice)> {
        self.pool.locks.iter().zip(&self.locks)
    }

    /// The default mutex's policy checked: a lock's name, the cost computed and the cost measured,
    /// as multiples of the optimum's.
    pub(crate) fn checked(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.each().filter_map(|(lock, found)| {
            let measured = self.measured.iter().find(|measured| measured.0 == lock.name)?.1;
            Some((lock.name.as_str(), found.judged.costs[0].relative()[DEFAULT], measured))
        })
    }

    /// Replaces the names of programs and locks. `hidden` has the new name of each lock.
    pub(crate) fn hide_names(&mut self, hidden: impl Fn(&str) -> String) {
        const PROGRAM: &str = "program";
        self.pool.programs = vec![PROGRAM.to_owned()];
        for lock in &mut self.pool.locks {
            lock.name = hidden(&lock.name);
            lock.own_name.clone_from(&lock.name);
            PROGRAM.clone_into(&mut lock.program);
        }
        // They name locks and programs.
        self.changes = change::changes(self);
    }

    fn thresholds(&self) -> Thresholds {
        let longest = OptimalOnline::MAX_THRESHOLD_NS;
        Thresholds {
            program: self.pool.programs.join(", "),
            cost_ns: self.pool.cost as u64,
            locks: self
                .each()
                .map(|(lock, advice)| {
                    (lock.name.clone(), (advice.judged.threshold as u64).min(longest))
                })
                .collect(),
        }
    }
}

fn broken_in<'c>(input: &'c str, costs: &'c [Costs]) -> impl Iterator<Item = String> + 'c {
    let at = costs.iter().zip(FACTORS);
    at.filter_map(move |(costs, factor)| {
        costs.broken().map(|what| format!("{input}, at {factor} C: {what}"))
    })
}

/// Where all goes; known to be writable before anything is done.
#[derive(Debug)]
struct Destination {
    /// The folder of `--output`.
    directory: PathBuf,
    /// The report in that folder.
    page: PathBuf,
    /// Of the demo.
    recording: Option<PathBuf>,
    /// The file of `--thresholds`, if it was asked for.
    thresholds: Option<PathBuf>,
}

impl Destination {
    fn open(options: &AdviseOptions) -> Result<Self, Error> {
        let directory = options.output.clone();
        files::make_directory(&directory, "--output DIR")?;
        let page = directory.join("report.html");
        let recording = options.demo.then(|| directory.join("waits.json"));
        files::probe_for(&page, "--output DIR")?;
        if let Some(path) = &recording {
            files::probe_for(path, "--output DIR")?;
        }
        if let Some(path) = &options.thresholds {
            files::probe_for(path, "--thresholds FILE")?;
        }
        Ok(Self { directory, page, recording, thresholds: options.thresholds.clone() })
    }

    fn write(&self, advice: &Advice) -> Result<(), Error> {
        let say = |what: &str, path: &Path| {
            Output::Stdout.line(format_args!("{what:11}{}", path.display()));
        };
        let pictures = page::pictures(advice);
        files::replace(&self.page, page::page(advice, &pictures).as_bytes())?;
        for picture in &pictures {
            let path = self.directory.join(&picture.file);
            files::replace(&path, picture.standalone().as_bytes())?;
        }
        say("report", &self.page);
        say("pictures", &self.directory.join("waits-*.svg"));
        if let Some(path) = &self.recording {
            say("recording", path);
        }
        if let Some(path) = &self.thresholds {
            let thresholds = advice.thresholds();
            files::replace(path, thresholds.to_json().as_bytes())?;
            let what = count(thresholds.locks.len(), "threshold");
            Output::Stdout.line(format_args!("thresholds {} ({what})", path.display()));
        }
        Ok(())
    }
}
