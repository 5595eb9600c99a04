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

/// The named one, or the first of the usual places: beside the command, in `../lib`, and of another
/// build of the same workspace. If it is in none, builds it from the sources that the command
/// carries.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Refusal> {
    let shim = match named {
        Some(path) => path.to_owned(),
        None => {
            let places = places();
            match places.iter().find(|place| place.is_file()) {
                Some(place) => place.clone(),
                None => stanchion_shim::provide(&mut |line| {
                    Output::Stderr.line(format_args!("stanchion: {line}"));
                })
                .map_err(|failure| Refusal::NoShim { places, failure })?,
            }
        }
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
    let Ok(me) = std::env::current_exe() else { return Vec::new() };
    let Some(beside) = me.parent() else { return Vec::new() };
    let mut places = vec![beside.join(NAME)];
    if let Some(above) = beside.parent() {
        places.extend(
            ["lib", "study", "release", "debug"].map(|folder| above.join(folder).join(NAME)),
        );
    }
    let mut seen = Vec::new();
    places.retain(|place| {
        let new = !seen.contains(place);
        seen.push(place.clone());
        new
    });
    places
}
