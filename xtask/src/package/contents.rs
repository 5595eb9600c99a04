//! The demands of crates.io and docs.rs on a package, and our own.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::members::{Member, text};
use crate::failure::{Failure, Result};
use crate::shell;

/// The categories of crates.io that fit our crates. A package with another slug is refused there
/// only after it has been uploaded.
const CATEGORIES: [&str; 10] = [
    "algorithms",
    "command-line-utilities",
    "concurrency",
    "data-structures",
    "development-tools",
    "development-tools::profiling",
    "development-tools::testing",
    "no-std",
    "science",
    "simulation",
];

/// The most keywords, and the most letters of one.
const KEYWORDS: usize = 5;
const LETTERS: usize = 20;

/// The largest archive of ours, in KiB. crates.io takes 10 MiB.
const LARGEST: u64 = 640;

/// The files of every package, beside its sources.
const FILES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Folders of a member that its package leaves out.
const LEFT_OUT: [&str; 3] = ["tests/", "proptest-regressions/", "target/"];

/// Lists what is wrong with the manifest of `member`.
pub(crate) fn manifest(member: &Member) -> Vec<String> {
    let package = &member.metadata;
    let mut wrong = Vec::new();
    let list = |field: &str| {
        let values = package[field].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    for field in ["description", "license", "repository", "readme", "rust_version"] {
        if text(package, field).is_empty() {
            wrong.push(format!("no `{field}`"));
        }
    }
    let keywords = list("keywords");
    if keywords.is_empty() || keywords.len() > KEYWORDS {
        wrong.push(format!("{} keywords: 1 to {KEYWORDS}", keywords.len()));
    }
    for keyword in &keywords {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+".contains(letter);
        if keyword.len() > LETTERS || !keyword.chars().all(plain) {
            wrong.push(format!(
                "keyword `{keyword}`: at most {LETTERS} letters, digits, _, - and +"
            ));
        }
    }
    let categories = list("categories");
    if categories.is_empty() || categories.len() > 5 {
        wrong.push(format!("{} categories: 1 to 5", categories.len()));
    }
    for category in categories {
        if !CATEGORIES.contains(&category.as_str()) {
            wrong.push(format!("category `{category}` is none of those that fit: {CATEGORIES:?}"));
        }
    }
    // A twin has the documentation of its crate.
    let documented = member.library && member.twin_of.is_none();
    if documented && package["metadata"]["docs"]["rs"]["targets"].as_array().is_none() {
        wrong.push("no `targets` in [package.metadata.docs.rs]".to_owned());
    }
    wrong
}

/// Lists what is wrong with the files of `archive`, and prints their number and their size.
pub(crate) fn archive(member: &Member, archive: &Path) -> Result<Vec<String>> {
    let listing = shell::output(Command::new("tar").arg("-tzf").arg(archive))?;
    let inside = format!("{}/", member.full_name());
    let files: Vec<_> = listing.lines().filter_map(|line| line.strip_prefix(&inside)).collect();
    let bytes = archive.metadata().map_err(Failure::file(archive))?.len();
    let kib = bytes.div_ceil(1024);
    println!("{:34}  {:4} files  {kib:4} KiB", member.full_name(), files.len());

    let mut wrong = files_of(member, &files);
    if kib > LARGEST {
        wrong.push(format!("{kib} KiB: at most {LARGEST}, or raise the limit with a reason"));
    }
    // An archive of links could not be unpacked everywhere.
    let long = shell::output(Command::new("tar").arg("-tvzf").arg(archive))?;
    let links = long.lines().filter(|line| line.starts_with(['l', 'h']));
    wrong.extend(links.map(|line| format!("a link: {line}")));
    Ok(wrong)
}

fn files_of(member: &Member, files: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for needed in FILES {
        if !files.contains(&needed) {
            wrong.push(format!("no file {needed}"));
        }
    }
    if !files.iter().any(|file| file.starts_with("src/")) {
        wrong.push("no sources".to_owned());
    }
    let surplus = files.iter().find(|file| LEFT_OUT.iter().any(|folder| file.starts_with(folder)));
    if let Some(file) = surplus {
        wrong.push(format!("{file} is in the package: see `include` in its manifest"));
    }
    // Netlists that are under one licence only, whatever the code is under.
    let netlists = files.iter().any(|file| file.ends_with(".bench"));
    let license = text(&member.metadata, "license");
    if netlists && !license.ends_with(" AND Apache-2.0") {
        wrong.push(format!(
            "it has netlists, and its licence is `{license}`: add ` AND Apache-2.0`"
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn member(metadata: Value) -> Member {
        Member {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            folder: "crates/a".into(),
            twin_of: None,
            programs: Vec::new(),
            doc_tests: true,
            library: true,
            metadata,
        }
    }

    #[test]
    fn a_manifest_beyond_the_limits_of_a_registry_is_refused() {
        let good = json!({
            "description": "d", "license": "MIT", "repository": "r", "readme": "README.md", "rust_version": "1.95",
            "keywords": ["lock"], "categories": ["concurrency"], "metadata": { "docs": { "rs": { "targets": ["x"] } } },
        });
        assert_eq!(manifest(&member(good.clone())), Vec::<String>::new());
        for (field, value) in [
            ("keywords", json!(["scheduler-activations"])),
            ("keywords", json!(["a", "b", "c", "d", "e", "f"])),
            ("keywords", json!(["two words"])),
            ("categories", json!(["locks"])),
            ("categories", json!([])),
            ("readme", json!(null)),
            ("metadata", json!(null)),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert_eq!(manifest(&member(bad)).len(), 1, "{field}");
        }
    }

    #[test]
    fn a_package_without_a_licence_or_with_tests_is_refused() {
        let member = member(json!({ "license": "MIT OR Apache-2.0" }));
        let good = [
            "Cargo.toml",
            "Cargo.lock",
            "README.md",
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "src/lib.rs",
        ];
        assert_eq!(files_of(&member, &good), Vec::<String>::new());
        assert_eq!(files_of(&member, &good[..5]).len(), 1);
        assert_eq!(files_of(&member, &good[1..]).len(), 1);
        for surplus in ["tests/a.rs", "data/s27.bench"] {
            assert_eq!(files_of(&member, &[&good[..], &[surplus]].concat()).len(), 1, "{surplus}");
        }
    }
}
