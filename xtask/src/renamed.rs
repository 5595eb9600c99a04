//! `cargo xtask renamed`: every test and every experiment of an earlier revision is still there, or
//! the map accounts for it.
//!
//! Each file of `xtask/renamed` is a part of the map, named for the crate that had its tests. A
//! test that has another name now has a line `old new`. A test of something that is gone has `old -
//! reason`. Names are those of `cargo test --workspace -- --list`, without the program, and with
//! `-` for a space. An example in the documentation is named `doc:` and its item, without the file
//! and line: `doc:ThreadPool::join`. An experiment is named `experiment:` and its id, as `stanchion
//! study --list` prints it: `experiment:fr92/fig4`.
//!
//! Compared are all programs of the workspace together, so that a test that has moved to another
//! crate under its name needs no line. Nor does a test of a program that is a module of another
//! program now: it has the name of the module in front of its own. A test that several programs
//! have counts as often. The map is one to one: each line takes away one name of the earlier
//! revision, and gives it one of today's that has no other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
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

/// Compares what there is with the earlier revision.
pub(crate) fn renamed(options: &Options) -> Result {
    let map = map()?;
    let then = earlier(&options.since)?;
    let now = counted(&names(&shell::root(), &shell::target())?);
    let complaints = unaccounted(&then, &now, &map);
    println!(
        "{} tests and experiments then, {} now, {} in the map, {} not accounted for",
        then.values().sum::<usize>(),
        now.values().sum::<usize>(),
        map.len(),
        complaints.len()
    );
    if complaints.is_empty() { Ok(()) } else { Err(Failure::verdict(complaints.join("\n"))) }
}

/// Returns the map, of all its files.
fn map() -> Result<Vec<Entry>> {
    let folder = shell::root().join(MAPS);
    let mut map = Vec::new();
    for file in std::fs::read_dir(&folder).map_err(Failure::file(&folder))? {
        let path = file.map_err(Failure::file(&folder))?.path();
        let text = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
        let wrong = |why| Failure::verdict(format!("{}: {why}", path.display()));
        map.extend(parse(&text).map_err(wrong)?);
    }
    Ok(map)
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
            && !take_linked(&mut new_left, new)
        {
            complaints.push(format!(
                "`{old}` is to be `{new}` now, which is no test, or another one's new name"
            ));
        }
    }
    for (name, count) in &mut old_left {
        while *count > 0 && take_linked(&mut new_left, name) {
            *count -= 1;
        }
    }
    let lost = old_left.into_iter().filter(|(_, count)| *count > 0);
    complaints.extend(lost.map(|(name, count)| match count {
        1 => format!("`{name}` is gone, and not in the map"),
        _ => format!("`{name}` is gone {count} times, and not in the map"),
    }));
    complaints
}

/// Takes a test of that name out. Returns whether there was one.
fn take(left: &mut Tests, name: &str) -> bool {
    let Some(count) = left.get_mut(name).filter(|count| **count > 0) else { return false };
    *count -= 1;
    true
}

/// Takes a test of that name out of those that have a module in front of it. Returns whether there
/// was one.
fn take_linked(left: &mut Tests, name: &str) -> bool {
    let behind = format!("::{name}");
    let linked = left.iter_mut().find(|(other, count)| other.ends_with(&behind) && **count > 0);
    let Some((_, count)) = linked else { return false };
    *count -= 1;
    true
}

/// Returns the tests and experiments of an earlier revision. They are listed once, in a copy.
fn earlier(revision: &str) -> Result<Tests> {
    let mut git = Command::new("git");
    let commit = shell::output(
        git.current_dir(shell::root()).args(["rev-parse", &format!("{revision}^{{commit}}")]),
    )?;
    let folder = shell::target().join("renamed");
    let tree = folder.join(commit.trim());
    let list = folder.join(format!("{}.txt", commit.trim()));
    if let Ok(text) = std::fs::read_to_string(&list) {
        return Ok(counted(&text));
    }
    std::fs::create_dir_all(&tree).map_err(Failure::file(&tree))?;
    let archive = folder.join("tree.tar");
    let mut git = Command::new("git");
    git.current_dir(shell::root()).args(["archive", "--output"]).arg(&archive).arg(commit.trim());
    shell::output(&mut git)?;
    shell::output(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&tree))?;
    // To cargo the packages of the copy are others than those here.
    let names = names(&tree, &folder.join("build"))?;
    std::fs::write(&list, &names).map_err(Failure::file(&list))?;
    Ok(counted(&names))
}

/// Returns the names of all tests and experiments in `tree`, one a line.
fn names(tree: &Path, target: &Path) -> Result<String> {
    let mut command = shell::cargo(["test", "--quiet", "--workspace", "--"]);
    command.args(["--list", "--format", "terse"]).current_dir(tree);
    let tests = shell::output(command.env("CARGO_TARGET_DIR", target))?;
    // Built by the command above, because the tests of the command run it.
    let mut command = Command::new(target.join("debug").join("stanchion"));
    let study = shell::output(command.args(["study", "--list"]).current_dir(tree))?;
    let tests = tests.lines().filter_map(|line| line.strip_suffix(": test")).map(key);
    let names = tests.chain(experiments(&study)).map(|name| name.replace(' ', "-"));
    Ok(names.map(|name| name + "\n").collect())
}

/// Returns the experiments of what `study --list` prints. The lines below each begin with a space,
/// and the last line with their number.
fn experiments(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| line.starts_with(char::is_alphabetic));
    lines.filter_map(|line| line.split_whitespace().next()).map(|id| format!("experiment:{id}"))
}

fn counted(names: &str) -> Tests {
    let mut tests = Tests::new();
    for name in names.lines() {
        *tests.entry(name.to_owned()).or_default() += 1;
    }
    tests
}

/// Returns the name of a test without what a move changes: an example's file, module and line. An
/// example of a whole crate has the name of the crate's folder.
fn key(name: &str) -> String {
    let in_source = name.split_once(".rs - ").or_else(|| name.split_once(".md - "));
    let Some((file, item)) = in_source else { return name.to_owned() };
    let item = item.split("(line").next().unwrap_or(item).trim();
    if item.is_empty() {
        let folder = file.split("/src/").next().unwrap_or(file);
        return format!("doc:{}", folder.rsplit('/').next().unwrap_or(folder));
    }
    // Modules are not part of it: from the type on, or the last name.
    let parts: Vec<&str> = item.split("::").collect();
    let typed = parts.iter().position(|part| part.starts_with(char::is_uppercase));
    format!("doc:{}", parts[typed.unwrap_or(parts.len() - 1)..].join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Tests {
        counted(&names.join("\n"))
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
    fn a_test_that_is_linked_with_others_needs_no_line() {
        let (then, now) = (of(&["a", "a", "b"]), of(&["m::a", "n::a", "m::c"]));
        assert!(unaccounted(&then, &now, &parse("b c").unwrap()).is_empty());
        assert_eq!(unaccounted(&then, &of(&["m::a", "na", "m::c"]), &[]).len(), 2, "no module");
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
    fn an_experiment_is_named_by_its_id() {
        let listed = "fr92/fig4  both  Load 1\n           built\nregret     real  Ours\n\n2 experiments, 2 built\n";
        assert_eq!(
            experiments(listed).collect::<Vec<_>>(),
            ["experiment:fr92/fig4", "experiment:regret"]
        );
    }

    #[test]
    fn an_example_is_named_by_its_item() {
        assert_eq!(key("tests::a"), "tests::a");
        assert_eq!(key("crates/a/src/b/c.rs - b::c::Pool::join (line 12)"), "doc:Pool::join");
        assert_eq!(key("crates/a/src/b/c.rs - b::join (line 12)"), "doc:join");
        assert_eq!(key("crates/a/src/lib.rs - (line 4)"), "doc:a");
        assert_eq!(key("crates/a/src/../README.md - (line 5)"), "doc:a");
    }
}
