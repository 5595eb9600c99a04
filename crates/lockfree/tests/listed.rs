//! Every structure of the crate is in the list that the tests go over.

use std::collections::BTreeSet;
use std::path::Path;

/// The traits that make a structure.
const TRAITS: [&str; 4] = ["ConcurrentStack", "ConcurrentQueue", "PriorityQueue", "Counter"];

/// Structures that are in the list inside of another one, or have tests of their own.
const ELSEWHERE: [(&str, &str); 3] = [
    ("Blocking", "tests/blocking.rs"),
    // It is in the list by the aliases `LockedHeap` and `LockedArrayHeap`.
    ("LockedSequentialHeap", "tests/heaps.rs"),
    // Its order is relaxed, which the model of the tests does not know.
    ("MultiQueue", "tests/heaps.rs"),
];

fn sources(folder: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

/// The types for which `source` implements one of the traits, outside of its tests.
fn structures(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    // An `impl` may be broken over lines.
    let words: Vec<_> = code.split_whitespace().collect();
    let named = words.windows(3).filter(|three| TRAITS.contains(&three[0]) && three[1] == "for");
    let name = |three: &[&str]| {
        let letters = three[2].chars().take_while(|letter| letter.is_alphanumeric());
        letters.collect::<String>()
    };
    named.map(name).collect()
}

#[test]
fn every_structure_is_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let found: BTreeSet<String> = files.iter().flat_map(|source| structures(source)).collect();
    assert!(found.contains("TreiberStack") && found.contains("FetchAddCounter"), "{found:?}");
    let list = std::fs::read_to_string(root.join("tests/common/structures.rs")).unwrap();
    let missing: Vec<_> = found
        .iter()
        .filter(|name| !list.contains(&format!("::{name}")))
        .filter(|name| ELSEWHERE.iter().all(|(elsewhere, _)| elsewhere != name))
        .collect();
    assert!(missing.is_empty(), "without a line in tests/common/structures.rs: {missing:?}");
}
