//! The table of the barriers has each barrier of the crate.

use std::fs;
use std::path::Path;

/// Expands to the name of each barrier of the table.
macro_rules! names {
    ([] $({ $test:ident: $barrier:ty, name: $name:literal, $($rest:tt)* })+) => {
        &[$($name),+]
    };
}

const REGISTERED: &[&str] = stanchion_gang::__barriers!(names);

/// Returns the types of this source that implement `Barrier`: by themselves, or by the macro for
/// barriers with anonymous members.
fn barriers_in(source: &str) -> impl Iterator<Item = &str> {
    ["\nimpl Barrier for ", "\nanonymous_barrier!("].into_iter().flat_map(move |before| {
        source.split(before).skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            &rest[..end]
        })
    })
}

/// Returns the barriers of this source that the table does not have.
fn missing(source: &str) -> Vec<&str> {
    barriers_in(source).filter(|barrier| !REGISTERED.contains(barrier)).collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no files")]
fn each_barrier_has_a_row() {
    let mut found = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/barrier")).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        let missing = missing(&source);
        assert!(
            missing.is_empty(),
            "{}: {missing:?} has no row in src/barrier/table.rs",
            path.display()
        );
        found += barriers_in(&source).count();
    }
    assert_eq!(found, REGISTERED.len(), "a barrier is not found in the sources, or found twice");
}

#[test]
fn a_barrier_without_a_row_is_found() {
    assert_eq!(missing("\nimpl Barrier for Unregistered {}"), ["Unregistered"]);
    assert_eq!(missing("\nanonymous_barrier!(Unlisted, sleeps);"), ["Unlisted"]);
    assert!(missing("\nanonymous_barrier!(Central);").is_empty());
}
