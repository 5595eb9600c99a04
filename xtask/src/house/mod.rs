//! `cargo xtask house`: rules of the project that no other tool can check.
//!
//! 1. An algorithm names no real primitive. In the crates of [`ALGORITHMS`] no path through `std`
//!    or `core` leads to one. Tests may name them, also those in a `tests.rs` of their own. Clippy
//!    cannot say this, because on the real machine `machine`'s atomics are core's.
//! 2. An algorithm reads no clock but `machine::clock`'s: `Instant::now` stands nowhere in these
//!    crates, tests apart. `Instant` itself may be named, and `machine` re-exports it: `lock_api`
//!    wants deadlines of that type.
//! 3. No file has more than [`LONGEST`] lines.
//! 4. Nothing is left for later: none of the words of [`UNFINISHED`] in code or comments.
//! 5. The manifest of each twin is the one that [`twins`] writes from that of its crate.
//! 6. A waiting policy has no constant of time but those of `xtask/limits.txt`: see [`limits`].
//!
//! Other rules are met by some folders and not yet by others. Each folder has a committed figure
//! for each of them, which never rises: see [`figures`].
//!
//! | figures | |
//! | --- | --- |
//! | [`modules`], [`order`] | circles of imports, and imports against the order of the rooms |
//! | [`prose`] | how plain comments and messages are |
//! | [`invariants`] | references to invariants that do not exist |
//! | [`orderings`] | orderings without a comment |
//! | [`markdown`] | paths, and steps of walks, that lead nowhere |

mod figures;
mod invariants;
mod limits;
mod markdown;
mod modules;
mod order;
mod orderings;
mod places;
mod prose;

use std::collections::BTreeMap;

use crate::failure::{Failure, Result};
use crate::orderings::sites::File;
use crate::{shell, twins};
use figures::{Figure, Figures};
pub(crate) use modules::is_test;
use places::Places;
use prose::Prose;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Lower the committed figures to those of today; raises none
    #[arg(long)]
    update: bool,
    /// Name what counts in this folder's figures, such as crates/gang, and end
    #[arg(long, value_name = "FOLDER", conflicts_with = "update")]
    list: Option<String>,
    /// With --list, only this rule
    #[arg(long, requires = "list")]
    rule: Option<String>,
}

/// Crates and files written against `machine`. `machine` itself has the real primitives. The front
/// ends need no other machine.
const ALGORITHMS: [&str; 11] = [
    "crates/spin/src",
    "crates/competitive/src",
    "crates/lockfree/src",
    "crates/threadpool/src",
    "crates/gang/src",
    "crates/activations/src",
    "crates/applications/src",
    "crates/preload/src/linux/permits.rs",
    "crates/preload/src/linux/seat.rs",
    "crates/watch/src/polls.rs",
    "crates/watch/src/sequence.rs",
];

/// The names that such a crate takes from `machine`.
const PRIMITIVES: [&str; 9] = [
    "atomic",
    "UnsafeCell",
    "spin_loop",
    "thread",
    "thread_local",
    "Instant",
    "Mutex",
    "RwLock",
    "Condvar",
];

const LONGEST: usize = 600;

/// Macros that stand for code to come, and marks of work to be done. They are in two parts here, so
/// that this file has none.
const UNFINISHED: [(&str, &str); 5] =
    [("to", "do!("), ("unimple", "mented!("), ("db", "g!("), ("FIX", "ME"), ("XX", "X")];

/// Folders with sources of ours.
const FOLDERS: [&str; 5] = ["crates", "benches", "examples", "fuzz", "xtask"];

/// Folders of `crates` with a twin of each crate.
const TWINS: [&str; 2] = ["crates/loom/", "crates/simulated/"];

/// The row of figures of all Markdown files.
const MARKDOWN: &str = "(markdown)";

/// Runs all rules on the whole workspace, as CI does.
pub(crate) fn all() -> Result {
    house(&Options { update: false, list: None, rule: None })
}

/// Checks all rules and lists what is against them, or lowers the committed figures.
pub(crate) fn house(options: &Options) -> Result {
    let files = Files::read()?;
    let now = files.figures()?;
    if let Some(folder) = &options.list {
        return list(&now, folder.trim_end_matches('/'), options.rule.as_deref());
    }
    let then = figures::committed()?;
    if options.update {
        figures::update(then.as_ref(), &now)?;
        println!("{} figures lowered", figures::fallen(then.as_ref(), &now));
    }
    let committed = figures::committed()?.unwrap_or_default();
    let mut wrong = files.against_rules();
    wrong.extend(figures::risen(&committed, &now));
    wrong.extend(twins::stale()?);
    wrong.extend(limits::against(&files.rust)?);
    if wrong.is_empty() { Ok(()) } else { Err(Failure::verdict(wrong.join("\n"))) }
}

/// Prints what counts in the figures of a folder.
fn list(now: &Figures, folder: &str, rule: Option<&str>) -> Result {
    let figures = now.get(folder).ok_or_else(|| {
        let folders: Vec<&str> = now.keys().map(String::as_str).collect();
        Failure::verdict(format!("no folder `{folder}`; there are: {}", folders.join(", ")))
    })?;
    for (name, figure) in figures.iter().filter(|(name, _)| rule.is_none_or(|rule| rule == **name))
    {
        println!("{name}: {}", figures::written(name, figure.value));
        figure.places.iter().for_each(|place| println!("    {place}"));
    }
    Ok(())
}

/// The files of the workspace with their texts, by path from the root.
struct Files {
    /// The text of each Rust file, by path.
    rust: BTreeMap<String, String>,
    /// The text of each Markdown file, by path.
    markdown: BTreeMap<String, String>,
}

impl Files {
    fn read() -> Result<Self> {
        let read = |paths: Vec<String>| {
            let texts = paths.into_iter().map(|path| {
                let full = shell::root().join(&path);
                let text = std::fs::read_to_string(&full).map_err(Failure::file(&full))?;
                Ok((path, text))
            });
            texts.collect::<Result<BTreeMap<_, _>>>()
        };
        let mut rust = Vec::new();
        for folder in FOLDERS {
            rust.extend(shell::sources(folder)?);
        }
        Ok(Self { rust: read(rust)?, markdown: read(markdown::files()?)? })
    }

    /// Returns what is against the rules that hold everywhere.
    fn against_rules(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (path, source) in &self.rust {
            let tests = path.ends_with("/tests.rs");
            let algorithm = !tests && ALGORITHMS.iter().any(|room| path.starts_with(room));
            let found = unfinished(source).into_iter().chain(long(source));
            let asked = algorithm.then(|| primitives(source).into_iter().chain(clocks(source)));
            let found = found.chain(asked.into_iter().flatten());
            wrong.extend(found.map(|why| format!("{path}:{why}")));
        }
        wrong
    }

    /// Returns today's figures.
    fn figures(&self) -> Result<Figures> {
        let mut figures = Figures::new();
        let mut prose: BTreeMap<&str, Prose> = BTreeMap::new();
        let mut stated = invariants::Invariants::default();
        self.rust.iter().for_each(|(path, source)| stated.read(path, source));
        let mut counted: BTreeMap<(&str, &'static str), Places> = BTreeMap::new();
        for (path, source) in &self.rust {
            let folder = folder_of(path);
            prose.entry(folder).or_default().read_rust(path, source);
            let mut count =
                |rule, places| counted.entry((folder, rule)).or_default().extend::<Places>(places);
            count("invariants", stated.wrong(path, source));
            if path.starts_with("crates/") && path.contains("/src/") && !is_test(path) {
                count("orderings", orderings::silent(path, source));
            }
        }
        let is_source = |suffix: &str| self.rust.keys().any(|path| path.ends_with(suffix));
        for (path, text) in &self.markdown {
            prose.entry(MARKDOWN).or_default().read_markdown(path, text);
            counted
                .entry((MARKDOWN, "paths"))
                .or_default()
                .extend(markdown::astray(path, text, &is_source));
        }
        let mut note = |folder: &str, rule, figure| {
            figures.entry(folder.to_owned()).or_default().insert(rule, figure);
        };
        for (folder, prose) in prose {
            prose.figures().into_iter().for_each(|(rule, figure)| note(folder, rule, figure));
        }
        for ((folder, rule), places) in counted {
            note(folder, rule, Figure::counted(places));
        }
        let orders = order::committed()?;
        for (name, imports) in self.imports() {
            let folder = format!("crates/{name}");
            let rooms = modules::circles(&modules::between_rooms(&imports));
            note(&folder, "circle", largest(&folder, &modules::circles(&imports)));
            note(&folder, "rooms", largest(&folder, &rooms));
            if let Some(order) = orders.get(name) {
                note(&folder, "upward", Figure::counted(order::upward(name, &imports, order)));
            }
        }
        if let Some(stranger) =
            orders.keys().find(|name| !figures.contains_key(&format!("crates/{name}")))
        {
            return Err(Failure::verdict(format!("xtask/rooms.txt names no crate: {stranger}")));
        }
        Ok(figures)
    }

    /// Returns which module imports which, for each crate.
    fn imports(&self) -> BTreeMap<&str, modules::Imports> {
        let mut files: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (path, source) in &self.rust {
            let crates = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
            if let Some((name, inside)) = crates {
                files.entry(name).or_default().push((inside, source));
            }
        }
        files
            .into_iter()
            .map(|(name, files)| (name, modules::Crate::new(files).imports()))
            .collect()
    }
}

/// Returns the folder that has the figures of a file.
fn folder_of(path: &str) -> &str {
    let depth = match path.split('/').next() {
        Some("crates") if TWINS.iter().any(|twins| path.starts_with(twins)) => 3,
        Some("crates") => 2,
        _ => 1,
    };
    let ends = path.match_indices('/').map(|(at, _)| at).take(depth);
    &path[..ends.last().unwrap_or(path.len())]
}

/// Returns the size of the largest circle; each circle is a place.
fn largest(folder: &str, circles: &[Vec<modules::Module>]) -> Figure {
    let told = |circle: &Vec<modules::Module>| {
        let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        places::Place::new(folder, 0, format!("a circle of {}: {}", names.len(), names.join(", ")))
    };
    let value = circles.first().map_or(0, |circle| circle.len() as u64);
    Figure::new(value, circles.iter().map(told).collect())
}

fn long(source: &str) -> Option<String> {
    let lines = source.lines().count();
    (lines > LONGEST)
        .then(|| format!("{LONGEST}: {lines} lines; a second idea wants a second file"))
}

fn unfinished(source: &str) -> Vec<String> {
    let marks = UNFINISHED.map(|(head, tail)| format!("{head}{tail}"));
    let lines = source.lines().enumerate();
    lines
        .filter_map(|(number, line)| {
            let mark = marks.iter().find(|mark| line.contains(mark.as_str()))?;
            Some(format!("{}: `{mark}`: finish it or leave it out", number + 1))
        })
        .collect()
}

/// Finds where code outside of tests names a real primitive.
fn primitives(source: &str) -> Vec<String> {
    let file = File::new(source);
    let found =
        file.paths_from(&["std", "core", "alloc"]).into_iter().filter_map(|(line, path)| {
            let primitive = path.iter().find(|segment| PRIMITIVES.contains(segment))?;
            Some(format!(
                "{line}: `{primitive}` of {}: an algorithm asks `machine` for it",
                path[0]
            ))
        });
    found.collect()
}

/// Finds where code outside of tests reads the system's clock.
fn clocks(source: &str) -> Vec<String> {
    let lines = File::new(source).members("Instant", "now");
    let why = |line| {
        format!(
            "{line}: `Instant::now`: an algorithm asks `machine::clock`: `now`, `moment_after` or a `Deadline`"
        )
    };
    lines.into_iter().map(why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_primitive_is_found_however_it_is_named() {
        let named = |source: &str| primitives(source).len();
        assert_eq!(named("use core::sync::atomic::AtomicU32;"), 1);
        assert_eq!(named("use std::{fmt, sync::{Arc, Mutex}};"), 1);
        assert_eq!(named("fn f() { std::thread::yield_now(); ::core::hint::spin_loop() }"), 2);
        assert_eq!(named("std::thread_local! { static A: u8 = 0; }"), 1);
    }

    #[test]
    fn what_machine_offers_and_what_is_harmless_pass() {
        let source = "
            //! use std::sync::Mutex;
            use machine::{atomic::AtomicU32, thread}; use core::{fmt, mem::ManuallyDrop, time::Duration};
            fn f() { machine::thread::spawn(g); let atomic = core::ptr::null(); }
            #[cfg(test)] mod tests { use std::thread; }
        ";
        assert_eq!(primitives(source), Vec::<String>::new());
    }

    #[test]
    fn a_reading_of_the_clock_is_found_and_a_deadline_passes() {
        let found = |source: &str| clocks(source).len();
        assert_eq!(found("fn f() { Instant::now().checked_add(d) }"), 1);
        assert_eq!(found("fn f() { g(machine::clock::Instant :: now) }"), 1);
        assert_eq!(
            clocks("\nfn f() {\n    crate::clock::Instant::now();\n}")[0].split(':').next(),
            Some("3")
        );
        let harmless = "
            // Instant::now() is for `machine`.
            use machine::clock::{self, Instant, moment_after};
            fn f(until: Instant) -> u64 { clock::now(); Now::Instant; moment_after(d); h(\"Instant::now\") }
            #[cfg(test)] mod tests { fn g() { Instant::now(); } }
        ";
        assert_eq!(clocks(harmless), Vec::<String>::new());
    }

    #[test]
    fn unfinished_work_is_found_by_line() {
        let source = format!("fn f() {{\n    {}{})\n}}", UNFINISHED[0].0, UNFINISHED[0].1);
        assert!(unfinished(&source)[0].starts_with("2: "), "{source}");
    }

    #[test]
    fn a_twin_counts_by_its_crate() {
        assert_eq!(folder_of("crates/spin/src/mcs.rs"), "crates/spin");
        assert_eq!(folder_of("crates/loom/gang/tests/a.rs"), "crates/loom/gang");
        assert_eq!(folder_of("crates/loom/build.rs"), "crates/loom");
        assert_eq!(folder_of("xtask/src/main.rs"), "xtask");
    }

    #[test]
    fn the_largest_circle_is_the_figure_and_no_circle_is_none() {
        let module = |name: &str| vec![name.to_owned()];
        let circles = [vec![module("a"), module("b"), module("c")], vec![module("d"), module("e")]];
        let figure = largest("crates/x", &circles);
        assert_eq!((figure.value, figure.places.len()), (3, 2));
        assert_eq!(largest("crates/x", &[]).value, 0);
    }

    #[test]
    fn length_has_a_limit() {
        assert_eq!(long(&"\n".repeat(LONGEST)), None);
        assert!(long(&"\n".repeat(LONGEST + 1)).is_some());
    }
}
