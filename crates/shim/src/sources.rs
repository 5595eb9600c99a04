//! The package of the shim, as text.
//!
//! The folder `preload` of this crate is a link to the sources of `stanchion-preload`. A package
//! has the files in its place.

/// The name of the file that cargo builds.
pub(crate) const LIBRARY: &str = "libstanchion_preload.so";

/// The manifest, in which `VERSION` stands for the version of our crates. It asks for the
/// dependencies of `stanchion-preload`, and for the profile of the workspace.
pub(crate) const MANIFEST: &str = r#"[package]
name = "stanchion-preload"
version = "VERSION"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
stanchion-machine = { version = "=VERSION", default-features = false, features = ["std"] }
stanchion-competitive = "=VERSION"
stanchion-order = "=VERSION"
stanchion-spin = { version = "=VERSION", default-features = false, features = ["std"] }
lock_api = { version = "0.5.0", default-features = false }
libc = "0.2.191"

[profile.release]
lto = "thin"
codegen-units = 1

[workspace]
"#;

/// The file that the library's documentation is.
pub(crate) const README: &str = "The shim of `stanchion record`, built by the command itself.\n";

/// Each source and its path below `src`. It is empty on a system that has no shim.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    target_endian = "little"
))]
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("lib.rs", include_str!("../preload/lib.rs")),
    ("linux/allocator.rs", include_str!("../preload/linux/allocator.rs")),
    ("linux/calls.rs", include_str!("../preload/linux/calls.rs")),
    ("linux/cond.rs", include_str!("../preload/linux/cond.rs")),
    ("linux/current.rs", include_str!("../preload/linux/current.rs")),
    ("linux/deadline.rs", include_str!("../preload/linux/deadline.rs")),
    ("linux/dispatch.rs", include_str!("../preload/linux/dispatch.rs")),
    ("linux/errno.rs", include_str!("../preload/linux/errno.rs")),
    ("linux/filter.rs", include_str!("../preload/linux/filter.rs")),
    ("linux/frames.rs", include_str!("../preload/linux/frames.rs")),
    ("linux/futex.rs", include_str!("../preload/linux/futex.rs")),
    ("linux/interpose.rs", include_str!("../preload/linux/interpose.rs")),
    ("linux/layout.rs", include_str!("../preload/linux/layout.rs")),
    ("linux/locks.rs", include_str!("../preload/linux/locks.rs")),
    ("linux/log.rs", include_str!("../preload/linux/log.rs")),
    ("linux/maps.rs", include_str!("../preload/linux/maps.rs")),
    ("linux/marks.rs", include_str!("../preload/linux/marks.rs")),
    ("linux/message.rs", include_str!("../preload/linux/message.rs")),
    ("linux/mod.rs", include_str!("../preload/linux/mod.rs")),
    ("linux/module.rs", include_str!("../preload/linux/module.rs")),
    ("linux/mutex.rs", include_str!("../preload/linux/mutex.rs")),
    ("linux/orders.rs", include_str!("../preload/linux/orders.rs")),
    ("linux/permits.rs", include_str!("../preload/linux/permits.rs")),
    ("linux/place.rs", include_str!("../preload/linux/place.rs")),
    ("linux/policies.rs", include_str!("../preload/linux/policies.rs")),
    ("linux/real.rs", include_str!("../preload/linux/real.rs")),
    ("linux/rings.rs", include_str!("../preload/linux/rings.rs")),
    ("linux/sampling.rs", include_str!("../preload/linux/sampling.rs")),
    ("linux/seat.rs", include_str!("../preload/linux/seat.rs")),
    ("linux/session.rs", include_str!("../preload/linux/session.rs")),
    ("linux/table.rs", include_str!("../preload/linux/table.rs")),
    ("linux/until.rs", include_str!("../preload/linux/until.rs")),
    ("linux/unwind.rs", include_str!("../preload/linux/unwind.rs")),
    ("linux/waits.rs", include_str!("../preload/linux/waits.rs")),
];
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    target_endian = "little"
)))]
pub(crate) const SOURCES: &[(&str, &str)] = &[];

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, mut found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.iter().for_each(|folder| found.extend(files(folder)));
        found
    }

    fn preload() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload")
    }

    #[test]
    fn every_source_is_carried() {
        let folder = preload().join("src");
        let mut found = files(&folder);
        found.sort();
        let mut carried: Vec<_> = SOURCES.iter().map(|(name, _)| folder.join(name)).collect();
        carried.sort();
        assert_eq!(carried, found);
    }

    #[test]
    fn the_manifest_asks_for_what_the_shim_asks_for() {
        let names = |manifest: &str| {
            let mut inside = false;
            let mut names = Vec::new();
            for line in manifest.lines() {
                if line.starts_with('[') {
                    inside = line.ends_with("dependencies]") && !line.contains("dev-");
                } else if inside && let Some((name, _)) = line.split_once([' ', '.']) {
                    names.push(name.to_owned());
                }
            }
            names.sort();
            names
        };
        let own = fs::read_to_string(preload().join("Cargo.toml")).unwrap();
        assert_eq!(names(MANIFEST), names(&own));
        assert!(names(MANIFEST).len() >= 5);
        // The versions of the packages of others are those of the workspace.
        let root = fs::read_to_string(preload().join("../../Cargo.toml")).unwrap();
        for line in ["lock_api = { version = \"0.5.0\"", "libc = \"0.2.191\""] {
            assert!(root.contains(line) && MANIFEST.contains(line), "{line}");
        }
    }
}
