//! `cargo xtask peers`: parking_lot's own tests with our locks in the place of its own.
//!
//! The tests are not ours, and so are not committed here. The package that the registry serves
//! carries them, and `benches` depends on it. They are copied into `target/peers`, into a package
//! that is called `parking_lot` and re-exports `stanchion-competitive`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::shell;

/// The package, and the version that the lines below were written for.
const PEER: (&str, &str) = ("parking_lot", "0.13");

/// Its sources whose tests are run.
const SOURCES: [&str; 6] = ["condvar", "fair_mutex", "mutex", "once", "remutex", "rwlock"];

/// What its tests ask of its internals, and what answers the same question here.
const ADAPTED: [(&str, &str); 3] = [
    ("use super::PARKED_BIT;", "use crate::is_waited_for;"),
    ("once.0.load(Ordering::Relaxed) & PARKED_BIT == 0", "!is_waited_for(&once)"),
    // A reader is refused as soon as the writer waits.
    ("!unsafe { lock.raw() }.has_parked_threads()", "lock.try_read().is_some()"),
];

/// Tests that contradict a property that our locks document, with that property.
const LEFT_OUT: [(&str, &str); 2] = [
    (
        "condvar::tests::two_mutexes",
        "one condition variable may be waited on with several mutexes at once",
    ),
    ("once::tests::poison_bad", "`call_once` tries again after a panic"),
];

/// The manifest. The lock file is the workspace's, so that nothing new is downloaded.
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
stanchion-competitive = { path = "COMPETITIVE" }

[dev-dependencies]
rand = "0.10"

[workspace]
"#;

/// The library, before the tests.
const LIBRARY: &str = r"//! Written by `cargo xtask peers`.
#![allow(warnings)]

pub use stanchion_competitive::*;

/// Whether a thread sleeps until that is done: a bit of its one word.
#[cfg(test)]
fn is_waited_for(once: &Once) -> bool {
    assert_eq!(size_of::<Once>(), 4);
    // SAFETY: a `Once` is an atomic word, and lives.
    let word = unsafe { &*std::ptr::from_ref(once).cast::<std::sync::atomic::AtomicU32>() };
    word.load(std::sync::atomic::Ordering::Relaxed) & 4 != 0
}
";

/// Copies the tests and runs them.
pub(crate) fn peers() -> Result {
    let source = source()?;
    let folder = shell::target().join("peers");
    let competitive = shell::root().join("crates/competitive");
    let manifest = MANIFEST.replace("COMPETITIVE", &competitive.to_string_lossy());
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("Cargo.lock"), &read(&shell::root().join("Cargo.lock"))?)?;

    let mut library = LIBRARY.to_owned();
    let mut adapted = [false; ADAPTED.len()];
    for name in SOURCES {
        let text = read(&source.join("src").join(name).with_extension("rs"))?;
        let Some((_, tests)) = text.split_once("\n#[cfg(test)]\n") else {
            return Err(Failure::verdict(format!("{name}.rs of {} has no tests", PEER.0)));
        };
        let mut tests = tests.to_owned();
        for ((theirs, ours), adapted) in ADAPTED.into_iter().zip(&mut adapted) {
            *adapted |= tests.contains(theirs);
            tests = tests.replace(theirs, ours);
        }
        // Writing to a string does not fail.
        let _ = write!(library, "\nmod {name} {{\n#[cfg(test)]\n{tests}}}\n");
    }
    if let Some(at) = adapted.iter().position(|adapted| !adapted) {
        let why = format!("no test of {} has `{}` any more", PEER.0, ADAPTED[at].0);
        return Err(Failure::verdict(why));
    }
    for (test, _) in LEFT_OUT {
        let name = test.rsplit("::").next().unwrap_or(test);
        if !library.contains(&format!("fn {name}()")) {
            return Err(Failure::verdict(format!("{} has no test {test} any more", PEER.0)));
        }
    }
    write(&folder.join("src/lib.rs"), &library)?;
    let tests = source.join("tests");
    for entry in fs::read_dir(&tests).map_err(Failure::file(&tests))? {
        let from = entry.map_err(Failure::file(&tests))?.path();
        let Some(name) = from.file_name() else { continue };
        write(&folder.join("tests").join(name), &read(&from)?)?;
    }

    for (test, why) in LEFT_OUT {
        println!("left out: {test}: {why}");
    }
    let mut cargo = shell::cargo(["test", "--manifest-path"]);
    cargo.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(shell::target());
    // Exact: the name of one test may begin another one's.
    cargo.args(["--lib", "--tests", "--", "--exact"]);
    for (test, _) in LEFT_OUT {
        cargo.args(["--skip", test]);
    }
    shell::run(&mut cargo)
}

/// The folder of the peer's package, which cargo fetches if need be.
fn source() -> Result<PathBuf> {
    let version = shell::output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let metadata = ["metadata", "--format-version", "1", "--filter-platform", host];
    let text = shell::output(&mut shell::cargo(metadata))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::verdict(format!("cargo metadata: {error}")))?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let is_peer = |package: &&serde_json::Value| {
        let version = package["version"].as_str().unwrap_or_default();
        package["name"] == PEER.0 && version.starts_with(PEER.1)
    };
    let manifest = packages.find(is_peer).and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    folder.map(Path::to_owned).ok_or_else(|| {
        Failure::verdict(format!("{} {} is no dependency of benches any more", PEER.0, PEER.1))
    })
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Failure::file(path))
}

fn write(path: &Path, text: &str) -> Result {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    }
    fs::write(path, text).map_err(Failure::file(path))
}
