//! `cargo xtask peers`: our peers' own tests, with our types in the place of theirs.
//!
//! The tests are not ours, and so are not committed here. The package that the registry serves
//! carries them, and `benches` depends on it. They are copied into `target/peers/NAME`, into a
//! package that is called like the peer and re-exports ours. Each peer has a file below this one.

mod crossbeam_channel;
mod parking_lot;
mod rayon_core;

use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::shell;

/// The peers. Their tests are run.
const PEERS: [&Peer; 3] = [&crossbeam_channel::PEER, &parking_lot::PEER, &rayon_core::PEER];

/// A selection of peers and of their tests.
#[derive(Args)]
pub(crate) struct Options {
    /// Only this peer's tests
    peer: Option<String>,
    /// Passed to the test programs
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// A package with tests that are run over ours.
struct Peer {
    /// The name of the package.
    name: &'static str,
    /// The start of the version that the rest was written for.
    version: &'static str,
    /// The manifest of the copy. `CRATES` stands for the folder of our crates.
    manifest: &'static str,
    /// Copies the tests.
    copy: fn(&Copy<'_>) -> Result,
    /// The tests that contradict a documented decision.
    left_out: &'static [LeftOut],
}

/// A test that is left out.
struct LeftOut {
    /// The file of the copy in which the test is.
    file: &'static str,
    /// The function's name.
    test: &'static str,
    /// The documented decision which the test contradicts.
    why: &'static str,
}

/// A copy of a peer's tests.
struct Copy<'a> {
    /// The peer.
    peer: &'a Peer,
    /// The folder of the package that the registry serves.
    source: &'a Path,
    /// The folder of the copy.
    folder: &'a Path,
}

impl Copy<'_> {
    /// Returns the text of a file of the peer.
    fn read(&self, path: &str) -> Result<String> {
        read(&self.source.join(path))
    }

    /// Writes a file of the copy, without the tests that are left out of it.
    fn write(&self, path: &str, text: &str) -> Result {
        let mut text = text.to_owned();
        for LeftOut { test, .. } in self.peer.left_out.iter().filter(|left| left.file == path) {
            let head = format!("fn {test}(");
            if !text.contains(&head) {
                return Err(self.gone(path, &head));
            }
            // An attribute may follow `#[test]`.
            text = text.replace(&head, &format!("#[cfg(any())]\n{head}"));
        }
        write(&self.folder.join(path), &text)
    }

    /// Replaces what a file of the peer asks of its internals by what asks the same of ours.
    ///
    /// # Errors
    ///
    /// If the text does not have one of the lines any more.
    fn adapt(&self, path: &str, text: &str, adapted: &[(&str, &str)]) -> Result<String> {
        let mut text = text.to_owned();
        for (theirs, ours) in adapted {
            if !text.contains(theirs) {
                return Err(self.gone(path, theirs));
            }
            text = text.replace(theirs, ours);
        }
        Ok(text)
    }

    /// Returns the failure that a file of the peer has changed.
    fn gone(&self, path: &str, line: &str) -> Failure {
        Failure::verdict(format!("{path} of {} has no `{line}` any more", self.peer.name))
    }
}

/// Runs the tests of all peers.
pub(crate) fn peers() -> Result {
    PEERS.into_iter().try_for_each(|peer| run(peer, &[]))
}

/// Runs the selected tests.
pub(crate) fn selected(options: &Options) -> Result {
    let Some(name) = &options.peer else {
        return PEERS.into_iter().try_for_each(|peer| run(peer, &options.arguments));
    };
    match PEERS.into_iter().find(|peer| peer.name == name) {
        Some(peer) => run(peer, &options.arguments),
        None => {
            let names = PEERS.map(|peer| peer.name).join(", ");
            Err(Failure::verdict(format!("no peer is called {name}; there are {names}")))
        }
    }
}

/// Copies the tests of `peer` and runs them.
fn run(peer: &Peer, arguments: &[String]) -> Result {
    let source = source(peer)?;
    let folder = shell::target().join("peers").join(peer.name);
    if folder.exists() {
        // Of an older version, a file may be left over.
        fs::remove_dir_all(&folder).map_err(Failure::file(&folder))?;
    }
    let crates = shell::root().join("crates");
    let manifest = peer.manifest.replace("CRATES", &crates.to_string_lossy());
    write(&folder.join("Cargo.toml"), &manifest)?;
    // The lock file is the workspace's, so that other versions are not downloaded.
    write(&folder.join("Cargo.lock"), &read(&shell::root().join("Cargo.lock"))?)?;
    (peer.copy)(&Copy { peer, source: &source, folder: &folder })?;

    for LeftOut { file, test, why } in peer.left_out {
        let path = folder.join(file);
        if !read(&path)?.contains(&format!("#[cfg(any())]\nfn {test}(")) {
            let why = format!("{test} of {} is not left out of {file}", peer.name);
            return Err(Failure::verdict(why));
        }
        println!("left out: {} {file} {test}: {why}", peer.name);
    }
    let mut cargo = shell::cargo(["test", "--manifest-path"]);
    cargo.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(shell::target());
    cargo.args(["--lib", "--tests", "--no-fail-fast", "--"]).args(arguments);
    shell::run(&mut cargo)
}

/// Returns the folder of the peer's package, which cargo fetches if need be.
fn source(peer: &Peer) -> Result<PathBuf> {
    let version = shell::output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let metadata = ["metadata", "--format-version", "1", "--filter-platform", host];
    let text = shell::output(&mut shell::cargo(metadata))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::verdict(format!("cargo metadata: {error}")))?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let is_peer = |package: &&serde_json::Value| {
        let version = package["version"].as_str().unwrap_or_default();
        package["name"] == peer.name && version.starts_with(peer.version)
    };
    let manifest = packages.find(is_peer).and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    folder.map(Path::to_owned).ok_or_else(|| {
        let (name, version) = (peer.name, peer.version);
        Failure::verdict(format!("{name} {version} is no dependency of benches any more"))
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
