//! A registry in a folder: our packages, and what they depend on.
//!
//! Cargo knows a registry that is a folder of unpacked packages, a *directory source*. Each package
//! in it has a file with the checksum of the archive that it was unpacked from, which is also in
//! the locks of the packages that depend on it. Here `cargo vendor` writes the packages of others,
//! and ours are unpacked beside them from what `cargo package` made. A home of its own tells cargo
//! to take all packages from there, and to ask no network.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::assemble::{read, write};
use super::members::Member;
use crate::failure::{Failure, Result};
use crate::shell;

/// The registry and all that is done with it: a folder outside of the workspace, because cargo
/// looks for a workspace in the folders above a package.
pub(crate) struct Registry {
    folder: PathBuf,
    /// Where builds go. It lies in the target folder, so that the next run finds them.
    target: PathBuf,
}

impl Registry {
    /// Makes the registry for the archives of `members`, which `cargo package` put into `archives`.
    /// `assembled` is the workspace that they were made in.
    pub(crate) fn new(members: &[Member], assembled: &Path, archives: &Path) -> Result<Self> {
        let folder = folder();
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(Failure::file(&folder))?;
        }
        let registry = Self { folder, target: shell::target().join("package-check").join("build") };
        let packages = registry.folder.join("registry");
        for folder in [&packages, &registry.home()] {
            fs::create_dir_all(folder).map_err(Failure::file(folder))?;
        }
        fetch(assembled)?;
        link(&packages)?;
        for member in members {
            let archive = archives.join(format!("{}.crate", member.full_name()));
            unpack(&archive, &packages)?;
            let sum = checksum(&archive)?;
            write(
                &packages.join(member.full_name()).join(".cargo-checksum.json"),
                &format!("{{\"files\":{{}},\"package\":\"{sum}\"}}"),
            )?;
        }
        let config = format!(
            "[source.crates-io]\nreplace-with = \"packages\"\n\n[source.packages]\ndirectory = {packages:?}\n\n[net]\noffline = true\n"
        );
        write(&registry.home().join("config.toml"), &config)?;
        Ok(registry)
    }

    /// Unpacks the archive of `member` apart from the registry, with nothing above it.
    pub(crate) fn unpacked(&self, member: &Member, archives: &Path) -> Result<PathBuf> {
        let to = self.folder.join("unpacked");
        fs::create_dir_all(&to).map_err(Failure::file(&to))?;
        unpack(&archives.join(format!("{}.crate", member.full_name())), &to)?;
        Ok(to.join(member.full_name()))
    }

    /// Returns `cargo` with `arguments`, started in `folder`, which knows only this registry.
    pub(crate) fn cargo(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = shell::cargo(arguments);
        self.environment(&mut command);
        command.current_dir(folder).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// Lets the cargo that `command` may start know only this registry.
    pub(crate) fn environment(&self, command: &mut Command) {
        command.env("CARGO_HOME", self.home());
    }

    /// Returns the path of `name` in the registry's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }
}

/// The longest time for which packages are fetched.
const FETCH: Duration = Duration::from_secs(600);

/// Returns the folder in which the packages of others are kept, in the target folder.
fn kept() -> PathBuf {
    shell::target().join("package-check").join("vendor")
}

/// Fetches all packages that the lock of `workspace` names and that are not members: those of other
/// systems too, because cargo resolves for all. They are kept with the lock that they were fetched
/// for.
pub(crate) fn fetch(workspace: &Path) -> Result {
    let kept = kept();
    let lock = workspace.join("Cargo.lock");
    let stamp = kept.join("made-for.lock");
    if stamp.is_file() && read(&stamp)? == read(&lock)? {
        return Ok(());
    }
    if kept.exists() {
        fs::remove_dir_all(&kept).map_err(Failure::file(&kept))?;
    }
    let mut vendor = shell::cargo(["vendor", "--quiet", "--versioned-dirs", "--locked"]);
    // Where cargo is configured to take packages from another registry, it takes these from there
    // too. A registry that does not answer must not delay the end of the task.
    vendor.arg("--respect-source-config").env("CARGO_NET_RETRY", "1");
    vendor.arg(&kept).current_dir(workspace).stdout(Stdio::null());
    let text = shell::line(&vendor);
    let failed = |source| Failure::Start { command: text.clone(), source };
    let mut child = vendor.spawn().map_err(failed)?;
    match shell::within(FETCH, &mut child, |_| ()).map_err(failed)? {
        Ok(status) if status.success() => write(&stamp, &read(&lock)?),
        Ok(status) => Err(Failure::Command { command: text, status }),
        Err(_) => Err(Failure::verdict(format!(
            "`{text}` did not end within {} minutes; does the registry answer?",
            FETCH.as_secs() / 60
        ))),
    }
}

/// Links all packages that [`fetch`] has fetched into `to`.
fn link(to: &Path) -> Result {
    let kept = kept();
    for entry in fs::read_dir(&kept).map_err(Failure::file(&kept))? {
        let entry = entry.map_err(Failure::file(&kept))?;
        if entry.path().is_dir() {
            let link = to.join(entry.file_name());
            symlink(entry.path(), &link).map_err(Failure::file(&link))?;
        }
    }
    Ok(())
}

fn unpack(archive: &Path, to: &Path) -> Result {
    let mut tar = Command::new("tar");
    shell::output(tar.arg("-xzf").arg(archive).arg("-C").arg(to)).map(|_| ())
}

fn checksum(file: &Path) -> Result<String> {
    let line = shell::output(Command::new("sha256sum").arg(file))?;
    let sum = line.split_whitespace().next();
    sum.map(str::to_owned).ok_or_else(|| Failure::verdict(format!("sha256sum printed `{line}`")))
}

/// Returns the folder of the registry of this workspace: another for each clone, the same each
/// time.
fn folder() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    shell::root().hash(&mut hasher);
    std::env::temp_dir().join(format!("stanchion-packages-{:016x}", hasher.finish()))
}
