//! The written packages, as text.
//!
//! The folder `sources` of this crate has links to the sources of `stanchion-order` and of the
//! patches. A package has the files in their places.

/// The path of the first written file in the folder. It says that the folder is ours.
pub(crate) const README: &str = "README.md";

/// The first line of [`README`], by which a later write knows the folder again.
pub(crate) const TITLE: &str = "# Recorded locks, written by `stanchion patch`";

/// The text of [`README`] below its title.
pub(crate) const EXPLANATION: &str = "
`lock_api-0.4` and `lock_api-0.5` are upstream's `lock_api` with recorded acquisitions, for
`[patch.crates-io]`. `parking_lot_core-0.9` and `parking_lot_core-0.10` are upstream's with recorded
waits. `order` is the recorder that all depend on. `stanchion patch` prints the lines for
`Cargo.toml`. When it is run again, it replaces each file here.

What differs from upstream, and what is not seen:
https://github.com/stanchion-rs/stanchion/blob/main/patches/README.md
";

/// The manifest of the recorder, in which `VERSION` and `RUST` stand for those of our crates. It
/// inherits nothing from a workspace.
pub(crate) const ORDER_MANIFEST: &str = r#"[package]
name = "stanchion-order"
version = "VERSION"
edition = "2024"
rust-version = "RUST"
license = "MIT OR Apache-2.0"
repository = "https://github.com/stanchion-rs/stanchion"
publish = false

[workspace]
"#;

/// The path of the recorder in the manifests of the patches.
pub(crate) const PATH_IN_REPOSITORY: &str = "../../crates/order";

/// The path of the recorder in the written manifests.
pub(crate) const WRITTEN_PATH: &str = "../order";

/// The manifests of the patches with their paths in the folder.
pub(crate) const MANIFESTS: [(&str, &str); 4] = [
    ("lock_api-0.4/Cargo.toml", include_str!("../sources/lock_api-0.4.toml")),
    ("lock_api-0.5/Cargo.toml", include_str!("../sources/lock_api-0.5.toml")),
    ("parking_lot_core-0.9/Cargo.toml", include_str!("../sources/parking_lot_core-0.9.toml")),
    ("parking_lot_core-0.10/Cargo.toml", include_str!("../sources/parking_lot_core-0.10.toml")),
];

/// Each file that is written as it is, and its path in the folder.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("lock_api-0.4/LICENSE-APACHE", include_str!("../sources/lock_api-APACHE")),
    ("lock_api-0.4/LICENSE-MIT", include_str!("../sources/lock_api-MIT")),
    ("lock_api-0.5/LICENSE-APACHE", include_str!("../sources/lock_api-APACHE")),
    ("lock_api-0.5/LICENSE-MIT", include_str!("../sources/lock_api-MIT")),
    ("order/LICENSE-APACHE", include_str!("../LICENSE-APACHE")),
    ("order/LICENSE-MIT", include_str!("../LICENSE-MIT")),
    ("order/README.md", include_str!("../sources/order.md")),
    ("lock_api-0.4/src/identity.rs", include_str!("../sources/lock_api-0.4/identity.rs")),
    ("lock_api-0.4/src/lib.rs", include_str!("../sources/lock_api-0.4/lib.rs")),
    ("lock_api-0.4/src/mutex.rs", include_str!("../sources/lock_api-0.4/mutex.rs")),
    ("lock_api-0.4/src/recorded.rs", include_str!("../sources/lock_api-0.4/recorded.rs")),
    ("lock_api-0.4/src/remutex.rs", include_str!("../sources/lock_api-0.4/remutex.rs")),
    ("lock_api-0.4/src/rwlock.rs", include_str!("../sources/lock_api-0.4/rwlock.rs")),
    ("lock_api-0.5/src/condvar.rs", include_str!("../sources/lock_api-0.5/condvar.rs")),
    ("lock_api-0.5/src/guard.rs", include_str!("../sources/lock_api-0.5/guard.rs")),
    ("lock_api-0.5/src/identity.rs", include_str!("../sources/lock_api-0.5/identity.rs")),
    ("lock_api-0.5/src/lib.rs", include_str!("../sources/lock_api-0.5/lib.rs")),
    ("lock_api-0.5/src/mutex.rs", include_str!("../sources/lock_api-0.5/mutex.rs")),
    ("lock_api-0.5/src/recorded.rs", include_str!("../sources/lock_api-0.5/recorded.rs")),
    ("lock_api-0.5/src/remutex.rs", include_str!("../sources/lock_api-0.5/remutex.rs")),
    ("lock_api-0.5/src/rwlock.rs", include_str!("../sources/lock_api-0.5/rwlock.rs")),
    ("order/src/current/memory.rs", include_str!("../sources/order/current/memory.rs")),
    ("order/src/current/mod.rs", include_str!("../sources/order/current/mod.rs")),
    ("order/src/current/place.rs", include_str!("../sources/order/current/place.rs")),
    ("order/src/current/slot.rs", include_str!("../sources/order/current/slot.rs")),
    ("order/src/entry.rs", include_str!("../sources/order/entry.rs")),
    ("order/src/file.rs", include_str!("../sources/order/file.rs")),
    ("order/src/foreign/findings.rs", include_str!("../sources/order/foreign/findings.rs")),
    ("order/src/foreign/mod.rs", include_str!("../sources/order/foreign/mod.rs")),
    ("order/src/foreign/table.rs", include_str!("../sources/order/foreign/table.rs")),
    ("order/src/foreign/tests.rs", include_str!("../sources/order/foreign/tests.rs")),
    ("order/src/graph/mod.rs", include_str!("../sources/order/graph/mod.rs")),
    ("order/src/graph/search.rs", include_str!("../sources/order/graph/search.rs")),
    ("order/src/graph/tests/history.rs", include_str!("../sources/order/graph/tests/history.rs")),
    ("order/src/graph/tests/mod.rs", include_str!("../sources/order/graph/tests/mod.rs")),
    ("order/src/graph/tests/random.rs", include_str!("../sources/order/graph/tests/random.rs")),
    ("order/src/identity.rs", include_str!("../sources/order/identity.rs")),
    ("order/src/json.rs", include_str!("../sources/order/json.rs")),
    ("order/src/lib.rs", include_str!("../sources/order/lib.rs")),
    ("order/src/local.rs", include_str!("../sources/order/local.rs")),
    ("order/src/mode.rs", include_str!("../sources/order/mode.rs")),
    ("order/src/path.rs", include_str!("../sources/order/path.rs")),
    ("order/src/process.rs", include_str!("../sources/order/process.rs")),
    ("order/src/recorder.rs", include_str!("../sources/order/recorder.rs")),
    ("order/src/report.rs", include_str!("../sources/order/report.rs")),
    ("order/src/switch.rs", include_str!("../sources/order/switch.rs")),
    ("order/src/totals.rs", include_str!("../sources/order/totals.rs")),
    ("order/src/wait.rs", include_str!("../sources/order/wait.rs")),
    ("parking_lot_core-0.9/LICENSE-APACHE", include_str!("../sources/lock_api-APACHE")),
    ("parking_lot_core-0.9/LICENSE-MIT", include_str!("../sources/lock_api-MIT")),
    ("parking_lot_core-0.9/build.rs", include_str!("../sources/parking_lot_core-0.9.build.rs")),
    ("parking_lot_core-0.9/src/lib.rs", include_str!("../sources/parking_lot_core-0.9/lib.rs")),
    (
        "parking_lot_core-0.9/src/parking_lot.rs",
        include_str!("../sources/parking_lot_core-0.9/parking_lot.rs"),
    ),
    (
        "parking_lot_core-0.9/src/recorded.rs",
        include_str!("../sources/parking_lot_core-0.9/recorded.rs"),
    ),
    (
        "parking_lot_core-0.9/src/spinwait.rs",
        include_str!("../sources/parking_lot_core-0.9/spinwait.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/generic.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/generic.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/linux.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/linux.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/mod.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/mod.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/redox.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/redox.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/sgx.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/sgx.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/unix.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/unix.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/wasm.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/wasm.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/wasm_atomic.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/wasm_atomic.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/windows/bindings.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/windows/bindings.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/windows/keyed_event.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/windows/keyed_event.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/windows/mod.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/windows/mod.rs"),
    ),
    (
        "parking_lot_core-0.9/src/thread_parker/windows/waitaddress.rs",
        include_str!("../sources/parking_lot_core-0.9/thread_parker/windows/waitaddress.rs"),
    ),
    ("parking_lot_core-0.9/src/util.rs", include_str!("../sources/parking_lot_core-0.9/util.rs")),
    (
        "parking_lot_core-0.9/src/word_lock.rs",
        include_str!("../sources/parking_lot_core-0.9/word_lock.rs"),
    ),
    ("parking_lot_core-0.10/LICENSE-APACHE", include_str!("../sources/lock_api-APACHE")),
    ("parking_lot_core-0.10/LICENSE-MIT", include_str!("../sources/lock_api-MIT")),
    ("parking_lot_core-0.10/src/lib.rs", include_str!("../sources/parking_lot_core-0.10/lib.rs")),
    (
        "parking_lot_core-0.10/src/parking_lot.rs",
        include_str!("../sources/parking_lot_core-0.10/parking_lot.rs"),
    ),
    (
        "parking_lot_core-0.10/src/recorded.rs",
        include_str!("../sources/parking_lot_core-0.10/recorded.rs"),
    ),
    (
        "parking_lot_core-0.10/src/spinwait.rs",
        include_str!("../sources/parking_lot_core-0.10/spinwait.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/generic.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/generic.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/linux.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/linux.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/mod.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/mod.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/redox.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/redox.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/sgx.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/sgx.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/unix.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/unix.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/wasm.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/wasm.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/wasm_atomic.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/wasm_atomic.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/windows/bindings.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/windows/bindings.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/windows/keyed_event.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/windows/keyed_event.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/windows/mod.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/windows/mod.rs"),
    ),
    (
        "parking_lot_core-0.10/src/thread_parker/windows/waitaddress.rs",
        include_str!("../sources/parking_lot_core-0.10/thread_parker/windows/waitaddress.rs"),
    ),
    (
        "parking_lot_core-0.10/src/word_lock.rs",
        include_str!("../sources/parking_lot_core-0.10/word_lock.rs"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, mut found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.iter().for_each(|folder| found.extend(files(folder)));
        found
    }

    #[test]
    fn every_file_of_the_patches_and_every_source_of_the_recorder_is_carried() {
        let (patches, order) = (repository().join("patches"), repository().join("crates/order"));
        let mut found = files(&order.join("src"));
        for patch in crate::PATCHES {
            let folder = patches.join(patch.folder);
            found.extend(files(&folder.join("src")));
            let others =
                ["LICENSE-MIT", "LICENSE-APACHE", "build.rs"].map(|name| folder.join(name));
            found.extend(others.into_iter().filter(|path| path.is_file()));
        }
        found.extend(["README.md", "LICENSE-MIT", "LICENSE-APACHE"].map(|name| order.join(name)));
        found.sort();
        let source = |path: &&str| match path.strip_prefix("order/") {
            Some(rest) => order.join(rest),
            None => patches.join(path),
        };
        let mut carried: Vec<_> = FILES.iter().map(|(path, _)| source(path)).collect();
        carried.sort();
        assert_eq!(carried, found);
        // Two paths may share one text, as the licences do: it is that of both.
        for (path, text) in FILES {
            assert!(fs::read_to_string(source(path)).unwrap() == *text, "{path}");
        }
    }

    #[test]
    fn the_recorder_has_no_dependencies_that_its_written_manifest_would_lack() {
        let own = fs::read_to_string(repository().join("crates/order/Cargo.toml")).unwrap();
        let (_, dependencies) = own.split_once("\n[dependencies]\n").expect("it has the section");
        assert!(dependencies.starts_with("\n[dev-dependencies]"), "{own}");
        assert!(!own.contains("[features]") && !own.contains("[target."), "{own}");
        let root = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
        for line in ORDER_MANIFEST.lines().filter(|line| {
            ["edition", "license", "repository"].iter().any(|field| line.starts_with(field))
        }) {
            assert!(root.contains(line), "{line}");
        }
    }

    #[test]
    fn the_manifests_name_the_recorder_once() {
        for (path, text) in MANIFESTS {
            assert_eq!(text.matches(PATH_IN_REPOSITORY).count(), 1, "{path}");
            assert_eq!(text.matches("path =").count(), 1, "{path}");
            assert!(text.contains("\n[workspace]"), "{path}");
        }
    }
}
