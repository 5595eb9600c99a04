//! The table of the strategies has each strategy of the crate.

use std::fs;
use std::path::{Path, PathBuf};

/// Expands to the type of each strategy of the table.
macro_rules! types {
    ([] $({ $name:ident: $strategy:ty, type: $type:ident, $($rest:tt)* })+) => {
        &[$(stringify!($type)),+]
    };
}

const REGISTERED: &[&str] = stanchion_threadpool::__strategies!(types);

/// Returns the types that implement `Strategy` in this source.
fn strategies_in(source: &str) -> impl Iterator<Item = &str> {
    source.split(" Strategy for ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Returns the strategies of this source that the table does not have.
fn missing(source: &str) -> Vec<&str> {
    strategies_in(source).filter(|strategy| !REGISTERED.contains(strategy)).collect()
}

/// Returns the files of a folder, and of the folders inside it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no files")]
fn each_strategy_has_a_row() {
    let mut found = 0;
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/strategy")) {
        let source = fs::read_to_string(&path).unwrap();
        let missing = missing(&source);
        assert!(
            missing.is_empty(),
            "{}: {missing:?} has no row in src/strategy/table.rs",
            path.display()
        );
        found += strategies_in(&source).count();
    }
    assert_eq!(found, REGISTERED.len(), "a strategy is not found in the sources, or found twice");
}

#[test]
fn a_strategy_without_a_row_is_found() {
    assert_eq!(missing("unsafe impl<L: Lock> Strategy for Unregistered<L> {}"), ["Unregistered"]);
    assert!(missing("unsafe impl Strategy for WorkStealing {}").is_empty());
}
