//! Paths in Markdown exist, and so does each function of a walk.
//!
//! Read are the targets of relative links, and code in backticks that looks like a path: it begins
//! with a folder of the workspace, or has a `/` and ends like a file. Blocks of code are not read,
//! and neither is the changelog, which tells of files that are gone.
//!
//! A step of a walk is `CRATE/FILE.rs::FUNCTION` or `CRATE/FILE.rs::TYPE::FUNCTION` in backticks,
//! with the file's path from the crate's `src`. The file must have a function of that name with a
//! body.

use super::places::{Place, Places};
use crate::failure::{Failure, Result};
use crate::orderings::sites::File;
use crate::shell;

/// Folders of the workspace that a path may begin with.
const FOLDERS: [&str; 8] =
    ["crates/", "docs/", "benches/", "examples/", "fuzz/", "xtask/", ".ci/", ".cargo/"];

/// Endings of files.
const ENDINGS: [&str; 8] = [".rs", ".md", ".txt", ".toml", ".sh", ".yml", ".yaml", ".json"];

/// Returns the Markdown files of the workspace, from its root, sorted.
pub(crate) fn files() -> Result<Vec<String>> {
    let mut found = Vec::new();
    gather("", &mut found)?;
    found.sort();
    Ok(found)
}

fn gather(folder: &str, found: &mut Vec<String>) -> Result {
    let full = shell::root().join(folder);
    for entry in std::fs::read_dir(&full).map_err(Failure::file(&full))? {
        let entry = entry.map_err(Failure::file(&full))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            if !["target", "study", ".git"].contains(&name.as_str()) {
                gather(&path, found)?;
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the paths in a Markdown file that lead nowhere. `is_source` says whether the path of a
/// Rust file of the workspace ends in that way.
pub(crate) fn astray(path: &str, text: &str, is_source: &dyn Fn(&str) -> bool) -> Places {
    if path == "CHANGELOG.md" {
        return Places::new();
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let exists = |target: &str| {
        let root = shell::root();
        root.join(folder).join(target).exists() || root.join(target).exists()
    };
    let mut places = Places::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut wrong = |why: String| places.push(Place::new(path, number + 1, why));
        for target in links(line) {
            if !exists(target) {
                wrong(format!("the link to `{target}` leads nowhere"));
            }
        }
        for code in spans(line) {
            if let Some((file, function)) = step(code) {
                if let Some(why) = no_function(&file, function) {
                    wrong(why);
                }
            } else if is_path(code) {
                for target in alternatives(code) {
                    // `spin/mcs.rs` is a file of that crate, and `sync/mutex.rs` of the one spoken
                    // of.
                    let in_crate = target
                        .split_once('/')
                        .map(|(name, inside)| format!("/{name}/src/{inside}"));
                    let is_short = !FOLDERS.iter().any(|folder| target.starts_with(folder))
                        && (is_source(&format!("/{target}"))
                            || in_crate.is_some_and(|path| is_source(&path)));
                    if !is_short && !exists(target.trim_end_matches('/')) {
                        wrong(format!("there is no `{target}`"));
                    }
                }
            }
        }
    }
    places
}

/// Returns the relative targets of the links in a line, without their anchors.
fn links(line: &str) -> Vec<&str> {
    let begins = line.match_indices("](").map(|(at, mark)| at + mark.len());
    let targets = begins.filter_map(|begin| line[begin..].split([')', ' ']).next());
    let relative =
        targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let files = relative.filter_map(|target| target.split('#').next());
    // Links to items, as rustdoc reads them, are no paths.
    let is_file = |target: &&str| target.contains(['.', '/']) && !target.contains([':', '@', '!']);
    files.filter(is_file).collect()
}

/// Returns the code in backticks of a line.
fn spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Returns whether code in backticks is meant as a path of a file or folder.
fn is_path(code: &str) -> bool {
    let is_plain = !code.contains(|c: char| c.is_whitespace() || "*<>…$()[]|:=\"'~".contains(c));
    let in_workspace = FOLDERS.iter().any(|folder| code.starts_with(folder));
    let is_file = code.contains('/') && ENDINGS.iter().any(|ending| code.ends_with(ending));
    let elsewhere = code.starts_with('/') || code.starts_with("target/") || code.contains("NAME");
    is_plain && (in_workspace || is_file) && !elsewhere
}

/// Returns the paths that `a/{b,c}.rs` stands for.
fn alternatives(code: &str) -> Vec<String> {
    let Some((head, rest)) = code.split_once('{') else { return vec![code.to_owned()] };
    let Some((inside, tail)) = rest.split_once('}') else { return vec![code.to_owned()] };
    let one = |part: &str| alternatives(&format!("{head}{part}{tail}"));
    inside.split(',').flat_map(one).collect()
}

/// Returns the path of the file, and the function, of a step of a walk.
fn step(code: &str) -> Option<(String, &str)> {
    let (file, function) = code.split_once(".rs::")?;
    let (name, inside) = file.split_once('/')?;
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    let named = function.split("::").all(is_name) && file.split('/').all(is_name);
    named.then(|| (format!("crates/{name}/src/{inside}.rs"), function))
}

/// Returns why a step of a walk is wrong.
fn no_function(file: &str, function: &str) -> Option<String> {
    let Ok(source) = std::fs::read_to_string(shell::root().join(file)) else {
        return Some(format!("there is no `{file}`"));
    };
    (!has_function(&source, function)).then(|| format!("`{file}` has no function `{function}`"))
}

/// Returns whether `function`, or a `Type::function`, has a body in the file.
fn has_function(source: &str, function: &str) -> bool {
    let suffix = format!("::{function}");
    File::new(source).functions().iter().any(|name| name == function || name.ends_with(&suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let is_source = |suffix: &str| "crates/spin/src/queue/mcs.rs".ends_with(suffix);
        let told = astray("xtask/a.md", text, &is_source);
        told.iter().map(|place| place.to_string().split(": ").last().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_path_is_sought_from_the_root_and_from_its_file() {
        let text = "`src/main.rs`, `xtask/src/{main,shell}.rs`, `crates/machine/`, [s](Cargo.toml#a) \
                    [t](../Cargo.toml) [u](https://a.b/c.md) [v](#w) [x](a::B) \
                    `spin/queue/mcs.rs` `queue/mcs.rs`";
        assert!(wrong(text).is_empty(), "{:?}", wrong(text));
        assert_eq!(wrong("`src/none.rs`"), ["there is no `src/none.rs`"]);
        assert_eq!(wrong("`xtask/src/{main,none}.rs`").len(), 1);
        assert_eq!(wrong("[a](none.md)"), ["the link to `none.md` leads nowhere"]);
    }

    #[test]
    fn code_that_is_no_path_is_let_be() {
        let text = "`a/b`, `crates/*/src`, `cargo run -p crates/x`, `std::fs`, `/proc/none.txt`, `none.rs`\n\
                    ```\n`xtask/none.rs`\n```\n";
        assert!(wrong(text).is_empty(), "{:?}", wrong(text));
    }

    #[test]
    fn a_step_of_a_walk_names_a_function_of_its_file() {
        let here = |rest: &str| wrong(&format!("`machine/handshake.rs::{rest}`"));
        assert!(here("Handshake::light").is_empty() && here("light").is_empty());
        assert_eq!(here("dark").len(), 1);
        assert_eq!(wrong("`machine/none.rs::light`").len(), 1);
        assert!(has_function("impl<T> A<T> { fn f() { } }", "A::f"));
        assert!(!has_function("trait A { fn f(); } // fn g() {}", "f"));
    }
}
