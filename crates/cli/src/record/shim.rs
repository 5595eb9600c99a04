//! Where the shim is.

use std::path::{Path, PathBuf};

use super::Refusal;
use stanchion_study::output::Output;

/// The name of its file.
pub(super) const NAME: &str = "libstanchion_preload.so";

/// Checks that there is a shim for this system.
pub(super) fn supported() -> Result<(), Refusal> {
    if cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        target_pointer_width = "64",
        target_endian = "little"
    )) {
        return Ok(());
    }
    let system = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
    Err(Refusal::System(system))
}

/// Returns the named one, or the one beside the command or in `../lib`. If there is none, builds
/// it: in a clone of the repository from its sources there, else from those that the command
/// carries.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Refusal> {
    let shim = match named {
        Some(path) => path.to_owned(),
        None => match places().into_iter().find(|place| place.is_file()) {
            Some(place) => place,
            None => stanchion_shim::provide(&mut |line| {
                Output::Stderr.line(format_args!("stanchion: {line}"));
            })
            .map_err(Refusal::NoShim)?,
        },
    };
    let refused = |reason: String| Refusal::Shim { path: shim.clone(), reason };
    let bytes = std::fs::read(&shim).map_err(|error| refused(error.to_string()))?;
    let exports = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    if !bytes.starts_with(b"\x7fELF") || !exports(b"pthread_mutex_lock") {
        return Err(refused("it is not a shim for pthread locks".into()));
    }
    // The loader takes a relative path as the program's, and has these two for separators.
    let whole = shim.canonicalize().map_err(|error| refused(error.to_string()))?;
    if whole.to_string_lossy().contains([':', ' ']) {
        return Err(refused(
            "LD_PRELOAD cannot name a path with a space or a colon in it: copy the shim elsewhere and name it with --shim".into(),
        ));
    }
    Ok(whole)
}

fn places() -> Vec<PathBuf> {
    let me = std::env::current_exe();
    let beside = me.ok().and_then(|me| Some(me.parent()?.to_owned()));
    let lib = beside.as_ref().and_then(|beside| Some(beside.parent()?.join("lib")));
    beside.into_iter().chain(lib).map(|folder| folder.join(NAME)).collect()
}
