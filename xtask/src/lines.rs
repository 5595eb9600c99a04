//! `cargo xtask lines`: lines of code of each crate, apart from comments, blank lines and tests.
//!
//! A line is of code if a token stands on it that is no comment. It is of a test if that token is
//! inside an item under `#[cfg(test)]`, or if the file has tests only. Counted are the `src`
//! folders of the crates; their `tests`, twins and examples are not.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::orderings::lexer::Token;
use crate::orderings::sites::File;
use crate::shell;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these crates
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
    /// Also count this revision, and print the difference
    #[arg(long, value_name = "REV")]
    since: Option<String>,
}

/// The lines of a file, or of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    /// The number of files.
    files: usize,
    /// The lines of code.
    code: usize,
    /// Lines with nothing but a comment.
    comments: usize,
    tests: usize,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }
}

/// Counts and prints.
pub(crate) fn lines(options: &Options) -> Result {
    let now = of_tree()?;
    let then = options.since.as_deref().map(of_revision).transpose()?;
    let chosen = |name: &String| options.crates.is_empty() || options.crates.contains(name);
    let all: BTreeSet<&String> = now.keys().chain(then.iter().flat_map(BTreeMap::keys)).collect();
    if let Some(stranger) = options.crates.iter().find(|name| !all.contains(name)) {
        return Err(Failure::verdict(format!("no crate `{stranger}`")));
    }
    let rows: Vec<(&str, Lines, Option<Lines>)> = all
        .into_iter()
        .filter(|name| chosen(name))
        .map(|name| {
            let at =
                |counts: &BTreeMap<String, Lines>| counts.get(name).copied().unwrap_or_default();
            (name.as_str(), at(&now), then.as_ref().map(at))
        })
        .collect();
    print!("{}", table(&rows, options.since.as_deref()));
    Ok(())
}

fn table(rows: &[(&str, Lines, Option<Lines>)], since: Option<&str>) -> String {
    let mut sum = (Lines::default(), Lines::default());
    for (_, now, then) in rows {
        sum.0 += *now;
        sum.1 += then.unwrap_or_default();
    }
    let mut text = format!("{:16}{:>7}{:>8}{:>10}{:>8}", "", "files", "code", "comments", "tests");
    if let Some(since) = since {
        text.push_str(&format!("    code at {since}, and the difference"));
    }
    text.push('\n');
    let total = ("all", sum.0, since.map(|_| sum.1));
    for (name, now, then) in rows.iter().chain([&total]) {
        let Lines { files, code, comments, tests } = now;
        text.push_str(&format!("{name:16}{files:>7}{code:>8}{comments:>10}{tests:>8}"));
        if let Some(then) = then {
            let difference = *code as i64 - then.code as i64;
            let share = 100.0 * difference as f64 / then.code.max(1) as f64;
            text.push_str(&format!("{:>8}{difference:>+8}{share:>+8.1} %", then.code));
        }
        text.push('\n');
    }
    text
}

/// Counts the crates as they are.
fn of_tree() -> Result<BTreeMap<String, Lines>> {
    let mut files = Vec::new();
    for path in shell::sources("crates")? {
        let full = shell::root().join(&path);
        files.push((path, std::fs::read_to_string(&full).map_err(Failure::file(&full))?));
    }
    Ok(by_crate(files))
}

/// Counts the crates as they were.
fn of_revision(revision: &str) -> Result<BTreeMap<String, Lines>> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        shell::output(command.current_dir(shell::root()).args(arguments))
    };
    let paths = git(&["ls-tree", "-r", "--name-only", revision, "--", "crates"])?;
    let sources = paths.lines().filter(|path| path.ends_with(".rs"));
    let texts =
        sources.map(|path| Ok((path.to_owned(), git(&["show", &format!("{revision}:{path}")])?)));
    Ok(by_crate(texts.collect::<Result<Vec<_>>>()?))
}

/// Adds up the files of each crate's `src`.
fn by_crate(files: Vec<(String, String)>) -> BTreeMap<String, Lines> {
    let mut counts: BTreeMap<String, Lines> = BTreeMap::new();
    for (path, source) in files {
        let inside = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        if let Some((name, file)) = inside {
            *counts.entry(name.to_owned()).or_default() += count(file, &source);
        }
    }
    counts
}

/// Counts a file, given by its path from `src`.
fn count(path: &str, source: &str) -> Lines {
    let file = File::new(source);
    let only_tests = crate::house::is_test(path);
    let (code, tests) = (lines_of(source, &file.code()), lines_of(source, &file.test_code()));
    let comments = source
        .lines()
        .enumerate()
        .filter(|(number, line)| {
            !line.trim().is_empty() && !code.contains(number) && !tests.contains(number)
        })
        .count();
    // A line that ends an item and a test counts once.
    let apart = tests.difference(&code).count();
    if only_tests {
        Lines { files: 1, code: 0, comments, tests: code.len() + apart }
    } else {
        Lines { files: 1, code: code.len(), comments, tests: apart }
    }
}

/// Returns the lines, counted from 0, on which a part of one of the tokens stands.
fn lines_of(source: &str, tokens: &[Token<'_>]) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    let (mut line, mut done) = (0, 0);
    for token in tokens {
        line += source[done..token.begin].matches('\n').count();
        let last = line + token.text.matches('\n').count();
        lines.extend(line..=last);
        (line, done) = (last, token.end());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Docs.\n\nuse a::b; // why\n/* c\n d */\nfn f() {\n    \"x\n\n y\";\n}\n\n#[cfg(test)]\nmod tests {\n    // No.\n    fn g() {}\n}\n";

    #[test]
    fn comments_blank_lines_and_tests_are_apart() {
        assert_eq!(count("a.rs", SOURCE), Lines { files: 1, code: 6, comments: 4, tests: 4 });
        assert_eq!(
            count("a/tests.rs", SOURCE),
            Lines { files: 1, code: 0, comments: 4, tests: 10 }
        );
    }

    #[test]
    fn only_the_sources_of_a_crate_count() {
        let file = |path: &str| (path.to_owned(), "fn f() {}\n".to_owned());
        let counts = by_crate(vec![
            file("crates/a/src/lib.rs"),
            file("crates/a/src/b/c.rs"),
            file("crates/a/tests/d.rs"),
            file("crates/e/src/lib.rs"),
        ]);
        assert_eq!(counts["a"].code, 2);
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["a", "e"]);
    }

    #[test]
    fn a_difference_has_its_sign_and_share() {
        let lines = |code| Lines { files: 1, code, comments: 2, tests: 3 };
        let text = table(&[("a", lines(90), Some(lines(100)))], Some("v1"));
        assert!(text.contains("code at v1"), "{text}");
        assert!(
            text.lines()
                .all(|line| !line.starts_with('a') || line.ends_with("100     -10   -10.0 %")),
            "{text}"
        );
        assert!(!table(&[("a", lines(90), None)], None).contains('%'));
    }
}
