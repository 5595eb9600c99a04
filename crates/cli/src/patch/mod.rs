//! `stanchion patch`: writes the packages for `[patch.crates-io]`, and says how they are used.

mod lockfile;

use std::fmt::Write as _;
use std::path::{Path, PathBuf, absolute};

use stanchion_patch::{Failure, PATCHES, Patch};
use stanchion_study::output::Output;

use crate::args::PatchOptions;
use lockfile::{LockFile, Locked};

/// Why nothing was written or checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("cannot write the patches: {0}")]
    Write(#[from] Failure),

    #[error(
        "{}: the path is not UTF-8, as Cargo.toml needs it; name another folder", .0.display()
    )]
    NotUtf8(PathBuf),

    #[error("cannot find {}: {source}", path.display())]
    Path { path: PathBuf, source: std::io::Error },

    #[error("there is no manifest {}: --manifest-path names a Cargo.toml", .0.display())]
    NoManifest(PathBuf),

    #[error("cannot read {}: {source}", path.display())]
    LockFile { path: PathBuf, source: std::io::Error },

    #[error("{} has no packages: `cargo generate-lockfile` makes it anew", path.display())]
    NotALockFile { path: PathBuf },

    #[error(
        "there is no Cargo.lock in {} or above it: build the program first, or name it by --manifest-path",
        .0.display()
    )]
    NoLockFile(PathBuf),
}

impl Refusal {
    pub(crate) fn exit_code(&self) -> u8 {
        if matches!(self, Self::Write(Failure::File { .. })) { 1 } else { 2 }
    }
}

/// Writes the patches, or with `--check` says whether they are used. Returns the exit code.
pub(crate) fn run(options: &PatchOptions) -> Result<u8, Refusal> {
    let program = folder_of_program(options.manifest_path.as_deref())?;
    let locks = lockfile::nearest(&program)?;
    let Some(folder) = &options.folder else {
        let locks = locks.ok_or(Refusal::NoLockFile(program))?;
        let (text, is_used) = checked(&locks);
        Output::Stdout.line(format_args!("{text}"));
        return Ok(if is_used { 0 } else { 1 });
    };
    let folder = made_absolute(folder)?;
    as_text(&folder)?;
    stanchion_patch::write(&folder)?;
    let written = without_links(folder)?;
    let text = instructions(as_text(&written)?, locks.as_ref(), &program);
    Output::Stdout.line(format_args!("{text}"));
    Ok(0)
}

/// Returns the folder of the manifest, or else the current one.
fn folder_of_program(manifest: Option<&Path>) -> Result<PathBuf, Refusal> {
    let Some(manifest) = manifest else { return made_absolute(Path::new(".")) };
    if !manifest.is_file() {
        return Err(Refusal::NoManifest(manifest.to_owned()));
    }
    Ok(made_absolute(manifest)?.parent().unwrap_or(Path::new("/")).to_owned())
}

fn made_absolute(path: &Path) -> Result<PathBuf, Refusal> {
    absolute(path).map_err(|source| Refusal::Path { path: path.to_owned(), source })
}

/// Returns the path without `..`, which cargo would take away before it looks at links. On Windows
/// the path stays, because cargo does not take the form that the system returns.
fn without_links(folder: PathBuf) -> Result<PathBuf, Refusal> {
    if cfg!(windows) {
        return Ok(folder);
    }
    folder.canonicalize().map_err(|source| Refusal::Path { path: folder, source })
}

/// Returns the path as it can stand in a manifest.
fn as_text(path: &Path) -> Result<&str, Refusal> {
    path.to_str().ok_or_else(|| Refusal::NotUtf8(path.to_owned()))
}

/// Returns the patch that can take the place of this package.
fn patch_for(locked: &Locked) -> Option<&'static Patch> {
    PATCHES.iter().find(|patch| patch.replaces(locked.name, &locked.version))
}

/// Returns the lines to be typed, with comments between them. `folder` has the patches.
fn instructions(folder: &str, locks: Option<&LockFile>, program: &Path) -> String {
    let mut text = format!("The patches are in {folder}.\n\n");
    let Some(locks) = locks else {
        let _ = write!(
            text,
            "# There is no Cargo.lock in {} or above it: name the program by --manifest-path,\n\
             # or take the lines for all versions. Cargo takes the patches when it makes the file.\n{}",
            program.display(),
            manifest_lines(folder, &PATCHES.iter().collect::<Vec<_>>())
        );
        return text + RUN;
    };
    let file = locks.path.display();
    let used: Vec<&Patch> = PATCHES
        .iter()
        .filter(|patch| {
            locks.locked.iter().any(|locked| patch.replaces(locked.name, &locked.version))
        })
        .collect();
    for locked in locks.locked.iter().filter(|locked| patch_for(locked).is_none()) {
        let _ = writeln!(text, "# {}", without_patch(locked));
    }
    if used.is_empty() {
        let _ = write!(text, "{}", nothing_to_patch(locks));
        return text;
    }
    let root = locks.path.parent().unwrap_or(program);
    let _ = write!(
        text,
        "# In {}, for the versions in {file}:\n{}",
        root.join("Cargo.toml").display(),
        manifest_lines(folder, &used)
    );
    let patchable = locks.locked.iter().filter(|locked| patch_for(locked).is_some());
    let (patched, missing): (Vec<_>, Vec<_>) = patchable.partition(|locked| locked.is_patched);
    for locked in patched {
        let _ = writeln!(text, "# {} {} is patched already.", locked.name, locked.version);
    }
    if !missing.is_empty() {
        let _ = writeln!(text, "{}", update(&missing));
    }
    text + RUN
}

/// The lines after those for the manifest and for `cargo update`.
const RUN: &str = "STANCHION_ORDERS=orders.txt cargo run
stanchion patch --check";

/// Returns the section of the manifest, and the comment that ends it.
fn manifest_lines(folder: &str, patches: &[&Patch]) -> String {
    let mut text = "[patch.crates-io]\n".to_owned();
    for (index, patch) in patches.iter().enumerate() {
        let path = quoted(&Path::new(folder).join(patch.folder).to_string_lossy());
        let package = patch.package;
        let is_first = patches[..index].iter().all(|before| before.package != package);
        let _ = if is_first {
            writeln!(text, "{package} = {{ path = {path} }}")
        } else {
            let name = format!("{package}_{}", patch.series.replace('.', ""));
            writeln!(text, "{name} = {{ package = \"{package}\", path = {path} }}")
        };
    }
    text + "\n# Then, in the folder of that Cargo.toml:\n"
}

/// Returns the command by which cargo takes the patches, of whichever version they are. It is one
/// command, because after the first of two the second version may have another number.
fn update(missing: &[&Locked]) -> String {
    let packages = missing.iter().map(|locked| format!(" -p {}@{}", locked.name, locked.version));
    format!("cargo update{}", packages.collect::<String>())
}

fn without_patch(Locked { name, version, .. }: &Locked) -> String {
    let patches = PATCHES.iter().filter(|patch| patch.package == *name);
    let series = patches.map(|patch| patch.series).collect::<Vec<_>>().join(" and ");
    format!("{name} {version} has no patch: there are patches of {series}.")
}

fn nothing_to_patch(locks: &LockFile) -> String {
    format!(
        "{} has no lock_api or parking_lot_core that can be patched. For a program of your own there are the locks of stanchion-checked.",
        locks.path.display()
    )
}

/// Returns the words of `--check`, and true if each package is patched.
fn checked(locks: &LockFile) -> (String, bool) {
    let mut lines = Vec::new();
    for locked in &locks.locked {
        let Locked { name, version, is_patched } = locked;
        lines.push(match patch_for(locked) {
            _ if *is_patched => format!("{name} {version} is patched: it comes from a folder."),
            Some(_) => format!(
                "{name} {version} is not patched. With the lines of `stanchion patch DIR` in Cargo.toml, run\n{}",
                update(&[locked])
            ),
            None => without_patch(locked),
        });
    }
    if locks.locked.is_empty() {
        lines.push(nothing_to_patch(locks));
    }
    for (name, version) in &locks.unused {
        lines.push(format!(
            "Cargo does not use the patch {name} {version} of Cargo.toml. If that stays so, a dependency demands another \
             version: `cargo tree -i {name}` names it."
        ));
    }
    let is_used = !locks.locked.is_empty() && locks.locked.iter().all(|locked| locked.is_patched);
    (lines.join("\n"), is_used)
}

/// Returns a string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_strings_of_toml() {
        assert_eq!(quoted("/a b/ü"), "\"/a b/ü\"");
        assert_eq!(quoted("C:\\a\"b\n"), "\"C:\\\\a\\\"b\\u000A\"");
    }
}
