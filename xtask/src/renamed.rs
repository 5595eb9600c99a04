//! `cargo xtask renamed`: every test of an earlier revision is still there, or the map of renamed
//! tests accounts for it.
//!
//! `xtask/renamed/CRATE.txt` has a line for each test that has another name now: `old new`. A test
//! of something that is gone has `old - reason`. Names are those of `cargo test -- --list`, without
//! the program. An example in the documentation is named `doc:` and its item, without the file and
//! line: `doc:ThreadPool::join`.
//!
//! Compared are the tests of the crate, of its loom models and of its simulated machine. A test
//! that several programs have counts as often. The map is one to one: each line takes away one test
//! of the earlier revision, and gives it one of today's that has no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The crates; all that have a map, if none is named
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
    /// The revision with the tests that must be accounted for
    #[arg(long, value_name = "REV")]
    since: String,
}

const MAPS: &str = "xtask/renamed";

/// The number of tests of each name.
type Tests = BTreeMap<String, usize>;

/// A line of a map.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Renamed { old: String, new: String },
    Gone { old: String },
}

/// Compares the tests of each crate with those of the earlier revision.
pub(crate) fn renamed(options: &Options) -> Result {
    let crates = if options.crates.is_empty() { mapped()? } else { options.crates.clone() };
    let mut wrong = Vec::new();
    for name in &crates {
        let map = map_of(name)?;
        let then = earlier(name, &options.since)?;
        let now = tests(&shell::root(), name, &shell::target())?;
        let complaints = unaccounted(&then, &now, &map);
        println!(
            "{name}: {} tests then, {} now, {} in the map, {} not accounted for",
            then.values().sum::<usize>(),
            now.values().sum::<usize>(),
            map.len(),
            complaints.len()
        );
        wrong.extend(complaints.into_iter().map(|why| format!("{name}: {why}")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::verdict(wrong.join("\n"))) }
}

/// Returns the crates that have a map.
fn mapped() -> Result<Vec<String>> {
    let folder = shell::root().join(MAPS);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Failure::file(&folder))? {
        let name = entry.map_err(Failure::file(&folder))?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".txt").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Returns a crate's map; without a file it is empty.
fn map_of(name: &str) -> Result<Vec<Entry>> {
    let path = shell::root().join(MAPS).join(format!("{name}.txt"));
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            parse(&text).map_err(|why| Failure::verdict(format!("{MAPS}/{name}.txt: {why}")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::file(&path)(error)),
    }
}

fn parse(text: &str) -> std::result::Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let wrong = || format!("line {}: neither `old new` nor `old - reason`", number + 1);
        let (old, rest) = line.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
        let (old, rest) = (old.to_owned(), rest.trim());
        entries.push(match rest.split_once(char::is_whitespace) {
            Some(("-", reason)) if !reason.trim().is_empty() => Entry::Gone { old },
            None if rest != "-" => Entry::Renamed { old, new: rest.to_owned() },
            _ => return Err(wrong()),
        });
    }
    Ok(entries)
}

/// Returns the earlier tests that are neither there nor in the map, and what is wrong with the map.
fn unaccounted(then: &Tests, now: &Tests, map: &[Entry]) -> Vec<String> {
    let mut complaints = Vec::new();
    // What is left of each side when tests with the same name have been taken out.
    let less = |one: &Tests, other: &Tests| -> Tests {
        let left = one.iter().map(|(name, count)| {
            (name.clone(), count.saturating_sub(other.get(name).copied().unwrap_or(0)))
        });
        left.filter(|(_, count)| *count > 0).collect()
    };
    let (mut old_left, mut new_left) = (less(then, now), less(now, then));
    let take = |left: &mut Tests, name: &str| match left.get_mut(name) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    for entry in map {
        let (Entry::Renamed { old, .. } | Entry::Gone { old }) = entry;
        if !take(&mut old_left, old) {
            let why = if now.contains_key(old) {
                "is there under its old name"
            } else {
                "was no test, or has another line"
            };
            complaints.push(format!("the map names `{old}`, which {why}"));
        } else if let Entry::Renamed { new, .. } = entry
            && !take(&mut new_left, new)
        {
            complaints.push(format!(
                "`{old}` is to be `{new}` now, which is no test, or another one's new name"
            ));
        }
    }
    let lost = old_left.into_iter().filter(|(_, count)| *count > 0);
    complaints.extend(lost.map(|(name, count)| match count {
        1 => format!("`{name}` is gone, and not in the map"),
        _ => format!("`{name}` is gone {count} times, and not in the map"),
    }));
    complaints
}

/// Returns the tests of a crate at an earlier revision. They are listed once, in a copy.
fn earlier(name: &str, revision: &str) -> Result<Tests> {
    let mut git = Command::new("git");
    let commit = shell::output(
        git.current_dir(shell::root()).args(["rev-parse", &format!("{revision}^{{commit}}")]),
    )?;
    let folder = shell::target().join("renamed");
    let tree = folder.join(commit.trim());
    let list = folder.join(format!("{}-{name}.txt", commit.trim()));
    if let Ok(text) = std::fs::read_to_string(&list) {
        return Ok(listed(&text));
    }
    std::fs::create_dir_all(&tree).map_err(Failure::file(&tree))?;
    let archive = folder.join("tree.tar");
    let mut git = Command::new("git");
    git.current_dir(shell::root()).args(["archive", "--output"]).arg(&archive).arg(commit.trim());
    shell::output(&mut git)?;
    shell::output(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&tree))?;
    // To cargo the packages of the copy are others than those here.
    let text = listing(&tree, name, &folder.join("build"))?;
    std::fs::write(&list, &text).map_err(Failure::file(&list))?;
    Ok(listed(&text))
}

/// Returns the tests of a crate in `tree`.
fn tests(tree: &Path, name: &str, target: &Path) -> Result<Tests> {
    Ok(listed(&listing(tree, name, target)?))
}

/// Returns what `cargo test -- --list` prints for a crate and its twins.
fn listing(tree: &Path, name: &str, target: &Path) -> Result<String> {
    // The twins of older revisions lie in `twins`.
    let packages: [(PathBuf, String); 5] = [
        (format!("crates/{name}").into(), format!("stanchion-{name}")),
        (format!("crates/loom/{name}").into(), format!("stanchion-{name}-loom")),
        (format!("crates/simulated/{name}").into(), format!("stanchion-{name}-simulated")),
        (format!("twins/loom/{name}").into(), format!("stanchion-{name}-loom")),
        (format!("twins/simulated/{name}").into(), format!("stanchion-{name}-simulated")),
    ];
    let there: Vec<&String> = packages
        .iter()
        .filter(|(folder, _)| tree.join(folder).exists())
        .map(|(_, package)| package)
        .collect();
    if there.is_empty() {
        return Err(Failure::verdict(format!("no crate `{name}` in {}", tree.display())));
    }
    let mut command = shell::cargo(["test", "--quiet"]);
    there.iter().for_each(|package| _ = command.args(["-p", package.as_str()]));
    command.args(["--", "--list", "--format", "terse"]);
    shell::output(command.current_dir(tree).env("CARGO_TARGET_DIR", target))
}

/// Reads what `--list` prints.
fn listed(text: &str) -> Tests {
    let mut tests = Tests::new();
    for name in text.lines().filter_map(|line| line.strip_suffix(": test")) {
        *tests.entry(key(name)).or_default() += 1;
    }
    tests
}

/// Returns the name of a test without what a move changes: an example's file, module and line.
fn key(name: &str) -> String {
    let in_source = name.split_once(".rs - ").or_else(|| name.split_once(".md - "));
    let Some((_, item)) = in_source else { return name.to_owned() };
    let item =
        item.split(" (line").next().unwrap_or(item).split("(line").next().unwrap_or(item).trim();
    // Modules are not part of it: from the type on, or the last name.
    let parts: Vec<&str> = item.split("::").collect();
    let typed = parts.iter().position(|part| part.starts_with(char::is_uppercase));
    let own = &parts[typed.unwrap_or(parts.len() - 1)..];
    let mode = name.rsplit_once(" - ").map_or("", |(_, mode)| mode);
    let mode = if ["compile", "compile fail", "should panic"].contains(&mode) { mode } else { "" };
    format!(
        "doc:{}{}",
        own.join("::"),
        if mode.is_empty() { String::new() } else { format!("/{}", mode.replace(' ', "-")) }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Tests {
        listed(&names.iter().map(|name| format!("{name}: test\n")).collect::<String>())
    }

    #[test]
    fn a_test_that_stayed_needs_no_line() {
        let tests = of(&["a::b", "a::c"]);
        assert!(unaccounted(&tests, &of(&["a::b", "a::c", "new"]), &[]).is_empty());
        assert_eq!(
            unaccounted(&tests, &of(&["a::b"]), &[]),
            ["`a::c` is gone, and not in the map"]
        );
        let twice = of(&["a::b", "a::b"]);
        assert_eq!(unaccounted(&twice, &of(&["a::b"]), &[]).len(), 1, "each counts as often");
    }

    #[test]
    fn a_line_takes_one_old_test_and_one_new_one() {
        let map = |text: &str| parse(text).unwrap();
        let (then, now) = (of(&["a", "b"]), of(&["c", "d"]));
        assert!(unaccounted(&then, &now, &map("# old new\na c\n\nb  d\n")).is_empty());
        assert!(unaccounted(&then, &now, &map("a c\nb - there is no b any more\n")).is_empty());
        assert_eq!(unaccounted(&then, &now, &map("a c\nb c\n")).len(), 1, "two old ones for one");
        assert_eq!(unaccounted(&then, &now, &map("a c\na d\n")).len(), 2, "two new ones for one");
        assert_eq!(unaccounted(&then, &now, &map("a c\nb e\n")).len(), 1, "no such test");
        let stale = unaccounted(&then, &of(&["a", "d"]), &map("a c\nb d\n"));
        assert_eq!(stale, ["the map names `a`, which is there under its old name"]);
    }

    #[test]
    fn a_map_gives_a_reason() {
        for text in ["a", "a -", "a b c"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("a - b c").unwrap(), [Entry::Gone { old: "a".to_owned() }]);
    }

    #[test]
    fn an_example_is_named_by_its_item() {
        assert_eq!(key("tests::a"), "tests::a");
        assert_eq!(key("crates/a/src/b/c.rs - b::c::Pool::join (line 12)"), "doc:Pool::join");
        assert_eq!(key("crates/a/src/b/c.rs - b::join (line 12) - compile"), "doc:join/compile");
        assert_eq!(key("crates/a/src/lib.rs - (line 4)"), "doc:");
        assert_eq!(key("crates/a/src/../README.md - (line 5)"), "doc:");
        assert_eq!(key("src/lib.rs - b::f (line 4) - compile fail"), "doc:f/compile-fail");
    }
}
