//! The table of the structures has each structure of the crate.

use std::fs;
use std::path::Path;

/// The traits that make a structure.
const TRAITS: [&str; 4] = ["ConcurrentStack", "ConcurrentQueue", "PriorityQueue", "Counter"];

/// A structure that has two rows by its aliases, and none by its name.
const ALIASED: &str = "LockedSequentialHeap";

/// Returns the name with which a text begins.
fn name(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len())]
}

/// Returns the types for which `source` implements one of the traits.
fn structures(source: &str) -> Vec<&str> {
    // An `impl` may be broken over lines.
    let words: Vec<_> = source.split_whitespace().collect();
    let named = words.windows(3).filter(|three| TRAITS.contains(&three[0]) && three[1] == "for");
    // The name of a macro's variable is empty.
    named.map(|three| name(three[2])).filter(|name| !name.is_empty()).collect()
}

/// Returns the structures of the source that have no row.
fn missing(source: &str) -> Vec<&str> {
    // A type of the table is `$crate::KIND::NAME`.
    let paths = include_str!("../../src/table.rs").split("$crate::");
    let rows: Vec<_> = paths.filter_map(|path| Some(name(path.split_once("::")?.1))).collect();
    let mut missing = structures(source);
    missing.retain(|structure| !rows.contains(structure) && *structure != ALIASED);
    missing
}

/// Looks for structures without a row in a folder. Returns the number of structures.
fn look_through(folder: &Path) -> usize {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = paths.map(|path| {
        if path.is_dir() {
            return look_through(&path);
        }
        let source = fs::read_to_string(&path).unwrap();
        let missing = missing(&source);
        assert!(missing.is_empty(), "{path:?}: {missing:?} has no row in src/table.rs");
        structures(&source).len()
    });
    found.sum()
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no files")]
fn every_structure_is_in_the_list() {
    let found = look_through(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(found >= 20, "{found} structures are recognized");
}

#[test]
fn a_structure_without_a_row_is_found() {
    assert_eq!(missing("impl[T] ConcurrentStack for Unlisted<T>;"), ["Unlisted"]);
    assert!(missing("impl[T] ConcurrentStack\n for TreiberStack<T>;").is_empty());
}
