//! `cargo xtask weaken`: is every memory ordering needed?
//!
//! Each ordering that asks for something is weakened in turn, and some model must then fail, by
//! name. A fence of a handshake (`SLEEP.heavy()`) is weakened by leaving it out. An ordering that
//! no model misses is either not needed, or needed for a reason that no model shows: then
//! [`ledger`]'s list of survivors must say which.
//!
//! Why not compile each mutant: loom takes orderings as values, so [`copy`] makes a copy of the
//! sources in which every site asks a table of one entry what to use, and [`models`] runs that one
//! build with a different entry each time. A sweep costs one build and some milliseconds a mutant,
//! instead of a build a mutant. Nor are all models run on all mutants: the same seam notes which
//! sites a model reaches, and only those models can fail.
//!
//! CI does not sweep (`--named`): a sweep has written down in WEAKEN.md which model fails for which
//! ordering, and those models must fail again. Only what the table does not know needs another
//! sweep, and then CI says so.
//!
//! What counts: a model that fails, aborts or reaches its limit of branches (the report says
//! which). A model that runs out of time counts for nothing, since weaker orderings have more
//! executions: the mutant is undecided, and that is a failure.

mod copy;
mod ledger;
mod models;
mod scope;

use std::time::Instant;

use crate::failure::{Failure, Result};
use models::Outcome;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this crate: machine, spin, competitive, lockfree, threadpool, gang, activations,
    /// applications, watch or preload
    #[arg(value_name = "CRATE")]
    room: Option<String>,
    /// Only files changed since the merge base with main, or in the last commit if there is no
    /// other
    #[arg(long, conflicts_with = "update")]
    changed: bool,
    /// Name the orderings and end
    #[arg(long)]
    list: bool,
    /// Run only the models that WEAKEN.md names, and none for the orderings that no model can miss:
    /// what CI does
    #[arg(long, conflicts_with = "update")]
    named: bool,
    /// Write WEAKEN.md anew from this run, which must then be of all crates
    #[arg(long, conflicts_with = "room")]
    update: bool,
}

/// One ordering, weakened to one other.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// The crate's folder under `crates`.
    pub(crate) room: String,
    /// The file, from the root, with `/`.
    pub(crate) file: String,
    /// `Type::function operation#n Ordering -> Weaker`: with the file, the key in both tables.
    pub(crate) change: String,
    /// Line, for people.
    pub(crate) line: usize,
    /// The number of its site in the copy.
    pub(crate) site: usize,
    /// The ordering that the site asks for instead.
    pub(crate) weaker: &'static str,
}

/// Weakens what `options` say.
pub(crate) fn weaken(options: &Options) -> Result {
    let files = scope::files()?;
    let mut mutants = scope::mutants(&files);
    if let Some(room) = &options.room {
        let room = scope::room(room)?;
        mutants.retain(|mutant| mutant.room == room);
    }
    if options.changed {
        mutants = scope::changed(mutants)?;
    }
    if options.list {
        for mutant in &mutants {
            println!("{}:{} {}", mutant.file, mutant.line, mutant.change);
        }
        println!("{} ways to weaken an ordering", mutants.len());
        return Ok(());
    }
    let whole = !options.changed && options.room.is_none();
    let survivors = ledger::survivors()?;
    if mutants.is_empty() {
        println!("no ordering to weaken here");
        return ledger::check(&survivors, &[], whole);
    }
    let begin = Instant::now();
    let copy = copy::make(&files)?;
    let outcomes = if options.named {
        models::named(&copy, &mutants, ledger::killer()?)?
    } else {
        let models = models::build(&copy, &mutants)?;
        println!(
            "{} models pass as they are ({:.1} s); {} mutants",
            models.len(),
            begin.elapsed().as_secs_f64(),
            mutants.len()
        );
        models::sweep(&models, &mutants)?
    };
    let results: Vec<_> = mutants.iter().zip(outcomes).collect();
    let count = |wanted: fn(&Outcome) -> bool| {
        results.iter().filter(|(_, outcome)| wanted(outcome)).count()
    };
    println!(
        "{} killed, {} survived, {} undecided, {} not tried in {:.1} s",
        count(|outcome| matches!(outcome, Outcome::Killed { .. })),
        count(|outcome| matches!(outcome, Outcome::Survived { .. } | Outcome::Unreached)),
        count(|outcome| matches!(outcome, Outcome::Undecided { .. })),
        count(|outcome| matches!(outcome, Outcome::Unnamed)),
        begin.elapsed().as_secs_f64()
    );
    if options.update {
        ledger::write(&survivors, &results)?;
    }
    ledger::check(&survivors, &results, whole)
}

/// Runs what CI runs: each ordering in the model that is known to need it. Only a sweep asks
/// whether the orderings on the list of survivors still survive, because that takes all models and
/// most of a sweep's time.
pub(crate) fn all() -> Result {
    weaken(&Options { room: None, changed: false, list: false, named: true, update: false })
}

/// For `map_err` where a file is not as expected.
fn misread(file: &str) -> impl Fn(String) -> Failure + '_ {
    move |why| Failure::verdict(format!("{file}: {why}"))
}
