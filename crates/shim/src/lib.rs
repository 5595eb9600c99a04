#![doc = include_str!("../README.md")]

mod sources;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sources::{LIBRARY, MANIFEST, README, SOURCES};

/// The reason why there is no shim.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// There is no shim for this system.
    Unsupported,
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where to keep it.
    NoCache,
    /// A file or folder of the cache cannot be written.
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Cargo cannot be started.
    NoCargo {
        /// The program that was tried.
        cargo: OsString,
        /// The error of the system.
        source: io::Error,
    },
    /// Cargo could not build it.
    Build {
        /// The text that cargo wrote to its standard error.
        said: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("there is no shim for this system"),
            Self::NoCache => {
                f.write_str("there is no folder to build the shim in: set XDG_CACHE_HOME or HOME")
            }
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NoCargo { cargo, source } => write!(
                f,
                "the shim is built by cargo, and `{}` cannot be run: {source}; put it on PATH",
                cargo.display()
            ),
            Self::Build { said } => write!(
                f,
                "cargo could not build the shim; with a network it fetches what it lacks. It said: {}",
                said.trim()
            ),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } | Self::NoCargo { source, .. } => Some(source),
            Self::Unsupported | Self::NoCache | Self::Build { .. } => None,
        }
    }
}

/// Returns the path of the shim, and builds the shim before if it is not in the cache. `told` gets
/// a line before a build, which takes some time.
///
/// In a clone of the repository cargo builds the package `stanchion-preload`, and looks each time
/// whether it has changed.
///
/// # Errors
///
/// [`Failure`], if it is not in the cache and cannot be built.
pub fn provide(told: &mut dyn FnMut(&str)) -> Result<PathBuf, Failure> {
    if SOURCES.is_empty() {
        return Err(Failure::Unsupported);
    }
    const BUILDS: &str =
        "the shim is not built yet: cargo builds it now, once, in some ten seconds";
    if let Some(package) = cloned() {
        let target = cache()?.join(format!("clone-{:016x}", hash(&package)));
        if !in_target(&target).is_file() {
            told(BUILDS);
        }
        return build(&package, &target);
    }
    let folder = cache()?.join(identity());
    let library = folder.join(LIBRARY);
    if library.is_file() {
        return Ok(library);
    }
    told(BUILDS);
    // Another process may do the same. Each builds in a folder of its own, and the last to end puts
    // its library in the place of an equal one.
    let work = folder.join(format!("build-{}", std::process::id()));
    let built =
        write_project(&work).and_then(|()| build(&work, &work.join("target"))).and_then(|built| {
            fs::rename(&built, &library).map_err(|source| Failure::File { path: built, source })
        });
    let _ = fs::remove_dir_all(&work);
    built.map(|()| library)
}

/// Returns the folder that this user's programs keep things in that can be made again.
fn cache() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("stanchion")).ok_or(Failure::NoCache)
}

/// Returns a name for a build of these sources: another version's library is never taken for it.
fn identity() -> String {
    format!("shim-{}-{:016x}", env!("CARGO_PKG_VERSION"), hash(&(MANIFEST, SOURCES)))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the folder of the shim's package, if this crate was built in a clone of the repository
/// that is still there. The carried manifest asks a registry for our crates, and the registry need
/// not have those of a clone.
fn cloned() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.join("preload");
    package.join("Cargo.toml").is_file().then_some(package)
}

/// Writes a package with the sources to `folder`.
fn write_project(folder: &Path) -> Result<(), Failure> {
    let manifest = MANIFEST.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let fixed = [("Cargo.toml", manifest.as_str()), ("README.md", README)].into_iter();
    let fixed = fixed.map(|(name, text)| (folder.join(name), text));
    let sources = SOURCES.iter().map(|(name, text)| (folder.join("src").join(name), *text));
    for (path, text) in fixed.chain(sources) {
        let above = path.parent().unwrap_or(folder);
        let written = fs::create_dir_all(above).and_then(|()| fs::write(&path, text));
        written.map_err(|source| Failure::File { path, source })?;
    }
    Ok(())
}

/// Returns the path of the library that cargo builds in the folder `target`.
fn in_target(target: &Path) -> PathBuf {
    target.join("release").join(LIBRARY)
}

/// Builds the package in `folder`, and returns the path of its library.
fn build(folder: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |more: &[&str]| {
        let mut command = Command::new(&cargo);
        command
            .args(["build", "--lib", "--release", "--quiet", "--target-dir"])
            .arg(target)
            .args(more);
        // The flags of another build are not meant for this one.
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "LD_PRELOAD"] {
            command.env_remove(name);
        }
        let ended: io::Result<Output> =
            command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).output();
        ended.map_err(|source| Failure::NoCargo { cargo: cargo.clone(), source })
    };
    // What the shim depends on came with the command. Only if it is gone is the network asked.
    let mut ended = run(&["--offline"])?;
    if !ended.status.success() {
        ended = run(&[])?;
    }
    if ended.status.success() {
        return Ok(in_target(target));
    }
    Err(Failure::Build { said: String::from_utf8_lossy(&ended.stderr).into_owned() })
}
