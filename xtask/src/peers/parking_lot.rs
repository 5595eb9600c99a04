//! parking_lot's tests, with the locks of `stanchion-competitive`.

use std::fmt::Write as _;
use std::fs;

use super::{Copy, LeftOut, Peer};
use crate::failure::{Failure, Result};

/// parking_lot.
pub(super) const PEER: Peer = Peer {
    name: "parking_lot",
    version: "0.13",
    manifest: MANIFEST,
    copy,
    left_out: &[
        LeftOut {
            file: "src/condvar.rs",
            test: "two_mutexes",
            why: "one condition variable may be waited on with several mutexes at once",
        },
        LeftOut {
            file: "src/once.rs",
            test: "poison_bad",
            why: "`call_once` tries again after a panic",
        },
    ],
};

/// The sources with the tests that are run. Each has the replacements that ask our locks what the
/// tests ask theirs.
const SOURCES: [(&str, &[(&str, &str)]); 6] = [
    ("condvar", &[]),
    ("fair_mutex", &[]),
    ("mutex", &[]),
    (
        "once",
        &[
            ("use super::PARKED_BIT;", "use crate::is_waited_for;"),
            ("once.0.load(Ordering::Relaxed) & PARKED_BIT == 0", "!is_waited_for(&once)"),
        ],
    ),
    ("remutex", &[]),
    ("rwlock", READERS),
];

/// A reader is refused as soon as the writer waits.
const READERS: &[(&str, &str)] =
    &[("!unsafe { lock.raw() }.has_parked_threads()", "lock.try_read().is_some()")];

const MANIFEST: &str = r#"[package]
name = "parking_lot"
version = "0.0.0"
edition = "2024"
publish = false

[features]
default = ["arc_lock"]
arc_lock = ["stanchion-competitive/arc_lock"]
serde = []

[dependencies]
stanchion-competitive = { path = "CRATES/competitive" }

[dev-dependencies]
rand = "0.10"

[workspace]
"#;

/// The library, before the tests.
const LIBRARY: &str = r"//! Written by `cargo xtask peers`.
#![allow(warnings)]

pub use stanchion_competitive::*;

/// Returns whether a thread sleeps until that is done: a bit of its one word.
#[cfg(test)]
fn is_waited_for(once: &Once) -> bool {
    assert_eq!(size_of::<Once>(), 4);
    // SAFETY: a `Once` is an atomic word, and lives.
    let word = unsafe { &*std::ptr::from_ref(once).cast::<std::sync::atomic::AtomicU32>() };
    word.load(std::sync::atomic::Ordering::Relaxed) & 4 != 0
}

";

/// Copies the tests of the sources, and the folder of tests.
fn copy(copy: &Copy<'_>) -> Result {
    let mut library = LIBRARY.to_owned();
    for (name, adapted) in SOURCES {
        let path = format!("src/{name}.rs");
        let text = copy.read(&path)?;
        let Some((_, tests)) = text.split_once("\n#[cfg(test)]\n") else {
            return Err(copy.gone(&path, "#[cfg(test)]"));
        };
        let tests = copy.adapt(&path, tests, adapted)?;
        copy.write(&path, &format!("#[cfg(test)]\n{tests}"))?;
        // Writing to a string does not fail.
        let _ = writeln!(library, "mod {name};");
    }
    copy.write("src/lib.rs", &library)?;
    let tests = copy.source.join("tests");
    for entry in fs::read_dir(&tests).map_err(Failure::file(&tests))? {
        let entry = entry.map_err(Failure::file(&tests))?;
        let path = format!("tests/{}", entry.file_name().to_string_lossy());
        copy.write(&path, &copy.read(&path)?)?;
    }
    Ok(())
}
