//! The table of the locks has each lock of the crate.

use std::fs;
use std::path::Path;

/// Expands to the raw lock of each row that has one.
macro_rules! raw_locks {
    ([] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: [
            $($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?
        ],
        $($rest:tt)*
    })+) => {
        &[$($(stringify!($raw),)?)+]
    };
}

const REGISTERED: &[&str] = stanchion_spin::__locks!(raw_locks);

/// Returns the types that implement `RawMutex` in this source.
fn locks_in(source: &str) -> impl Iterator<Item = &str> {
    source.split(" RawMutex for ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Returns the locks of this source that the table does not have.
fn missing(source: &str) -> Vec<&str> {
    locks_in(source).filter(|lock| !REGISTERED.contains(lock)).collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no files")]
fn each_lock_has_a_row() {
    let mut found = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        let missing = missing(&source);
        assert!(missing.is_empty(), "{}: {missing:?} has no row in src/table.rs", path.display());
        found += locks_in(&source).count();
    }
    assert_eq!(found, REGISTERED.len(), "a lock is not found in the sources, or found twice");
}

#[test]
fn a_lock_without_a_row_is_found() {
    let source = "unsafe impl<W: WaitPolicy> RawMutex for Unregistered<W> {}";
    assert_eq!(missing(source), ["Unregistered"]);
    assert!(missing("unsafe impl RawMutex for Ticket {}").is_empty());
}
