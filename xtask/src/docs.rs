//! `cargo xtask docs`: the documentation of every package, and the guide.
//!
//! The guide is an mdBook under `docs/guide`. Its code blocks are documentation tests of
//! `crates/guide`, so `cargo test` runs them. This task checks what that leaves out, and needs no
//! tool for it:
//!
//! 1. A relative link leads to a page or picture of the guide. The book has nothing else.
//! 2. A link to a file of this repository on the forge leads to a file that is here.
//! 3. An anchor is that of a heading of its page.
//! 4. `SUMMARY.md` names every page, and names no other. A page without a line there is not built.
//!
//! Then `mdbook`, if it is installed, builds the book. It warns of what it cannot read, and says
//! nothing of links.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The folder of the book.
const GUIDE: &str = "docs/guide";
/// The folder of its pages.
const PAGES: &str = "docs/guide/src";
/// The table of contents.
const SUMMARY: &str = "SUMMARY.md";
/// The address on the forge of the workspace's root.
const FORGE: &str = "https://github.com/stanchion-rs/stanchion/blob/main/";

/// Builds the documentation of every package, checks the guide, and builds it.
pub(crate) fn docs() -> Result {
    packages()?;
    links()?;
    book()
}

/// Builds the documentation of every package with documentation, warnings denied.
fn packages() -> Result {
    shell::run(shell::cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks every link of the guide.
fn links() -> Result {
    let root = shell::root();
    let mut files = BTreeMap::new();
    read(&root.join(PAGES), "", &mut files)?;
    let wrong = astray(&files, &|path| std::fs::read(root.join(path)).ok());
    if wrong.is_empty() {
        println!("guide: every link of {} pages leads somewhere", files.len());
        return Ok(());
    }
    Err(Failure::verdict(wrong.join("\n")))
}

/// Builds the book into the target folder, if mdBook is installed.
fn book() -> Result {
    let installed = Command::new("mdbook").arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: mdbook is not installed: `cargo install mdbook`");
        return Ok(());
    }
    let place = shell::target().join("guide");
    let mut build = Command::new("mdbook");
    build.current_dir(shell::root()).args(["build", GUIDE, "-d"]).arg(&place);
    shell::run(&mut build)?;
    println!("guide: {}", place.join("index.html").display());
    Ok(())
}

/// Reads the pages of `folder` by path from the guide's, and notes each other file with no text.
fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Option<String>>) -> Result {
    for entry in std::fs::read_dir(folder).map_err(Failure::file(folder))? {
        let path = entry.map_err(Failure::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, &format!("{prefix}{name}/"), files)?;
        } else if name.ends_with(".md") {
            let text = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
            files.insert(format!("{prefix}{name}"), Some(text));
        } else {
            files.insert(format!("{prefix}{name}"), None);
        }
    }
    Ok(())
}

/// Returns what is wrong with the links of `files`, a line each. `repository` returns the contents
/// of a file of the workspace, by path from its root.
fn astray(
    files: &BTreeMap<String, Option<String>>,
    repository: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut named = Vec::new();
    for (page, text) in files.iter().filter_map(|(page, text)| Some((page, text.as_ref()?))) {
        for (number, target) in targets(text) {
            let mut complain = |why: &str| {
                wrong.push(format!("{PAGES}/{page}:{number}: the link to `{target}` {why}"));
            };
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if let Some(path) = file.strip_prefix(FORGE) {
                match repository(path) {
                    None => complain("leads to no file of this repository"),
                    Some(bytes) => {
                        let text = String::from_utf8_lossy(&bytes);
                        if path.ends_with(".md") && !has_anchor(&text, anchor) {
                            complain("leads to no heading of that file");
                        }
                    }
                }
                continue;
            }
            if file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let path = if file.is_empty() { Some(page.clone()) } else { resolved(page, file) };
            match path.as_ref().and_then(|path| files.get(path)) {
                None => complain("leads to no page or picture of the guide"),
                Some(Some(text)) if !has_anchor(text, anchor) => {
                    complain("leads to no heading of that page");
                }
                Some(_) => {}
            }
            if page == SUMMARY {
                named.extend(path);
            }
        }
    }
    let pages = files.iter().filter(|(page, text)| text.is_some() && *page != SUMMARY);
    for (page, _) in pages.filter(|(page, _)| !named.contains(page)) {
        wrong
            .push(format!("{PAGES}/{page}: {SUMMARY} does not name it, so the book is without it"));
    }
    wrong
}

/// Returns the path from the guide's folder of what `page` calls `file`, if it lies there.
fn resolved(page: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the targets of all links and pictures of a page, with the numbers of their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // `[name]: target` gives a name to a target.
        if let Some((_, target)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            found.push((number, target.trim()));
        }
        for (at, mark) in line.match_indices("](") {
            // In code, brackets are no link.
            let is_code = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + mark.len()..].split([')', ' ']).next();
            found.extend(target.filter(|_| !is_code).map(|target| (number, target)));
        }
    }
    found
}

/// Returns the lines of a page outside of blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((number + 1, line))
    })
}

/// Returns whether a heading of the page has that anchor; the empty one is the page itself.
fn has_anchor(text: &str, anchor: &str) -> bool {
    anchor.is_empty() || anchors(text).iter().any(|known| known == anchor)
}

/// Returns the anchors of a page, as mdBook and the forge name them: letters, digits, `-` and `_`
/// of the heading, small, with `-` for a space. A heading that comes again gets a number.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.trim_start_matches('#').strip_prefix(' ') else { continue };
        if !line.starts_with('#') {
            continue;
        }
        let anchor: String = without_targets(heading.trim())
            .chars()
            .filter_map(|letter| match letter {
                letter if letter.is_whitespace() => Some('-'),
                letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
                _ => None,
            })
            .flat_map(char::to_lowercase)
            .collect();
        let times = seen.entry(anchor.clone()).or_insert(0);
        anchors.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    anchors
}

/// Returns a heading with the texts of its links, without their targets.
fn without_targets(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(pages: &[(&str, &str)]) -> Vec<String> {
        let mut files: BTreeMap<String, Option<String>> =
            pages.iter().map(|&(page, text)| (page.to_owned(), Some(text.to_owned()))).collect();
        files.insert("pictures/a.svg".to_owned(), None);
        astray(&files, &|path| (path == "README.md").then(|| b"# One\n## Two words".to_vec()))
    }

    const CONTENTS: (&str, &str) = (SUMMARY, "- [A](a.md)\n- [B](b/c.md)\n");

    #[test]
    fn links_that_lead_somewhere_pass() {
        let page = "# A `b::C`, twice\n[x](b/c.md) ![y](pictures/a.svg) [z](#a-bc-twice) `[w](no)`\n\
                    ```\n[u](none.md)\n```\n[t](https://a.b/c) [s]\n\n[s]: b/c.md#d-1\n";
        let forge = format!("## D\n## D\n[a](../a.md) [r]({FORGE}README.md#two-words)");
        assert_eq!(wrong(&[CONTENTS, ("a.md", page), ("b/c.md", &forge)]), Vec::<String>::new());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_its_line() {
        let fails = |text: &str| {
            let found = wrong(&[CONTENTS, ("a.md", text), ("b/c.md", "# D")]);
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].clone()
        };
        assert!(fails("\n[x](none.md)").starts_with("docs/guide/src/a.md:2: "));
        assert!(fails("[x](b/c.md#e)").contains("no heading"));
        assert!(fails("[x](#e)").contains("no heading"));
        assert!(fails("[x](../../../Cargo.toml)").contains("no page"));
        assert!(fails("[x](module::Item)").contains("no page"));
        assert!(fails(&format!("[x]({FORGE}none.rs)")).contains("no file"));
        assert!(fails(&format!("[x]({FORGE}README.md#three)")).contains("no heading"));
    }

    #[test]
    fn a_page_without_a_line_in_the_contents_is_named() {
        let found = wrong(&[(SUMMARY, "- [A](a.md)"), ("a.md", ""), ("b/c.md", "")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/guide/src/b/c.md: "));
    }

    /// Pages that say how many weakened orderings a model catches.
    const COUNTING: [&str; 8] = [
        "README.md",
        "SECURITY.md",
        "crates/activations/README.md",
        "crates/gang/README.md",
        "crates/machine/README.md",
        "crates/stanchion/README.md",
        "crates/threadpool/README.md",
        "docs/guide/src/testing.md",
    ];

    #[test]
    fn pages_give_the_count_of_weakenings_that_weaken_md_gives() {
        let page = |path: &str| std::fs::read_to_string(shell::root().join(path)).unwrap();
        let table = page("xtask/WEAKEN.md");
        let (before, after) = table.split_once(" ways to weaken one are caught").unwrap();
        assert!(after.contains("| `"), "the table follows");
        let words: Vec<&str> = before.rsplitn(4, ' ').collect();
        let [all, "of", caught, _] = words[..] else { panic!("{words:?}") };
        for path in COUNTING {
            let text = page(path);
            let numbers = text.split(|letter: char| !letter.is_ascii_digit());
            let numbers: Vec<&str> = numbers.collect();
            for count in [all, caught] {
                assert!(numbers.contains(&count), "{path} does not say {count}, as WEAKEN.md does");
            }
        }
    }

    #[test]
    fn every_link_of_the_guide_leads_somewhere() {
        if let Err(failure) = links() {
            panic!("{failure}");
        }
    }
}
