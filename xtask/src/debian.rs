//! Debian's Rust compiler with the source of its std, a std and a linker for AArch64, and an
//! emulator.
//!
//! Three tasks need what a toolchain of one machine does not have: `aarch64`, `check-targets`, and
//! `tsan` for user-level threads. Debian has all of it, built from one source package, so versions
//! fit. Nothing is installed. The packages are downloaded by `apt-get` as this machine has it
//! configured, and unpacked into the folder `debian` of the target folder. `apt-get` keeps its own
//! state there too, because it needs the lists of a second architecture.
//!
//! # Invariants
//!
//! 1. The folder `debian` is complete: it is made under another name and then renamed. Its file
//!    `stamp` says what is in it.
//! 2. Only the process that has locked `debian.lock` makes or removes the folder.
//!
//! If the packages cannot be had, then [`provide`] says why, and that is no error: a task skips
//! what it needed them for. If they were had and something is wrong with them, then that is an
//! error.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// The packages that are asked for by name. Those that they depend on come with them.
const ROOTS: &[&str] = &[
    "rustc-web",
    "rust-web-src",
    "qemu-user",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    // `dlltool`, without which nothing is checked for Windows.
    "binutils-mingw-w64-x86-64",
];

/// Parts of the names of packages that are unpacked although this machine may have them installed,
/// because their files are looked for in the folder.
const OURS: &[&str] = &["rust", "llvm", "qemu", "aarch64", "arm64", "mingw"];

/// Changes whenever the folder would be made differently.
const RECIPE: &str = "recipe 1";

/// Large files that nothing here reads.
const LEFT_OUT: &[&str] =
    &["usr/share", "usr/src/rustc-*/src", "usr/src/rustc-*/compiler", "usr/lib/python3"];

/// The unpacked packages.
#[derive(Debug)]
pub(crate) struct Debian {
    /// The folder with the unpacked packages.
    folder: PathBuf,
}

/// The result of asking for the packages.
#[derive(Debug)]
pub(crate) enum Provided {
    /// They are there.
    Unpacked(Debian),
    /// They cannot be had, for this reason.
    Missing(String),
}

/// Why a step did not succeed.
enum Stop {
    /// The packages cannot be had.
    Missing(String),
    /// They were had, and something is wrong.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Returns the unpacked packages. The first call downloads some 250 MB, and they take about 1 GB.
pub(crate) fn provide() -> Result<Provided> {
    match unpacked() {
        Ok(debian) => Ok(Provided::Unpacked(debian)),
        Err(Stop::Missing(why)) => Ok(Provided::Missing(why)),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

/// Returns the unpacked packages, or says that `what` is skipped and why. If they are `required`,
/// then that is an error.
pub(crate) fn provide_or_skip(what: &str, required: bool) -> Result<Option<Debian>> {
    match provide()? {
        Provided::Unpacked(debian) => Ok(Some(debian)),
        Provided::Missing(why) if required => Err(Failure::verdict(format!("{what}: {why}"))),
        Provided::Missing(why) => {
            println!("SKIPPED: {what}: {why}");
            Ok(None)
        }
    }
}

impl Debian {
    /// A script that runs the compiler, for `RUSTC`. It sets what the compiler finds its libraries
    /// by, and only for the compiler.
    pub(crate) fn rustc(&self) -> PathBuf {
        self.folder.join("rustc")
    }

    /// The root of the unpacked packages.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// A program of the packages.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.root().join("usr/bin").join(name)
    }

    /// Where the shared libraries of its programs are, for `LD_LIBRARY_PATH`.
    pub(crate) fn libraries(&self) -> String {
        libraries(&self.root())
    }

    /// `cargo` with this compiler, which also builds std from its source if it is told to.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = shell::cargo(arguments);
        // A wrapper of rustc, and flags for another compiler, are for that one.
        for name in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(name);
        }
        command.env("RUSTC", self.rustc());
        command
    }

    /// Compares the folder with its stamp and the compiler in it with `needed`.
    fn check(&self, needed: Version) -> Result<(), String> {
        let stamp = fs::read_to_string(self.folder.join("stamp")).map_err(|e| e.to_string())?;
        let [recipe, root, release, ..] = stamp.lines().collect::<Vec<_>>()[..] else {
            return Err("its stamp is cut off".to_owned());
        };
        if recipe != RECIPE {
            return Err(format!("it was made by `{recipe}`, and this is `{RECIPE}`"));
        }
        // The scripts name the folder, so it cannot be moved.
        if Path::new(root) != self.root() {
            return Err(format!("it was made as {root}"));
        }
        let found = self.release()?;
        if found != release {
            return Err(format!("it was made with rustc {release} and has {found}"));
        }
        if Version::of(&found).is_none_or(|found| found < needed) {
            return Err(format!("rustc {found} is older than {needed}"));
        }
        Ok(())
    }

    /// Returns the release that the compiler states.
    fn release(&self) -> Result<String, String> {
        let told = Command::new(self.rustc()).arg("-vV").output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&told.stdout);
        let release = text.lines().find_map(|line| line.strip_prefix("release: "));
        release.map(str::to_owned).ok_or_else(|| {
            format!("its rustc does not run: {}", String::from_utf8_lossy(&told.stderr).trim())
        })
    }
}

/// Finds the folder, or makes it.
fn unpacked() -> Result<Debian, Stop> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Stop::Missing("Debian's packages are used on x86-64 Linux only".to_owned()));
    }
    let target = shell::target();
    fs::create_dir_all(&target).map_err(Failure::file(&target))?;
    let lock = target.join("debian.lock");
    let file = File::create(&lock).map_err(Failure::file(&lock))?;
    // Until the file is closed (Invariant 2).
    file.lock().map_err(Failure::file(&lock))?;

    let needed = needed()?;
    let debian = Debian { folder: target.join("debian") };
    if debian.folder.exists() {
        match debian.check(needed) {
            Ok(()) => return Ok(debian),
            Err(why) => println!("{}: {why}; once more", debian.folder.display()),
        }
    }
    let partial = target.join("debian.partial");
    let made = make(&partial, &debian, needed);
    if made.is_err() {
        // Only space is lost if this fails: the next attempt begins by removing it.
        let _ = fs::remove_dir_all(&partial);
    }
    made?;
    // What has just been made must pass.
    let sound = |why| Failure::verdict(format!("{}: {why}", debian.folder.display()));
    debian.check(needed).map_err(sound)?;
    Ok(debian)
}

/// Downloads and unpacks into `partial`, and renames it to the folder of `debian`.
fn make(partial: &Path, debian: &Debian, needed: Version) -> Result<(), Stop> {
    remove(partial)?;
    let apt = Apt::new(partial)?;
    println!("asking apt-get for {}", ROOTS.join(", "));
    apt.get(&["update", "-qq"])?;
    let (packages, release) = apt.packages(needed)?;
    let archives = partial.join("archives");
    fs::create_dir_all(&archives).map_err(Failure::file(&archives))?;
    println!("downloading {} packages", packages.len());
    let names: Vec<_> = packages.iter().map(String::as_str).collect();
    apt.get(&[&["download", "-qq"], &names[..]].concat())?;

    let root = partial.join("root");
    println!("unpacking them into {}", debian.folder.display());
    for archive in entries(&archives)? {
        shell::output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&root))?;
    }
    for pattern in LEFT_OUT {
        matching(&root, pattern)?.iter().try_for_each(|path| remove(path))?;
    }
    remove(&archives)?;
    remove(&apt.state)?;

    sanitizer(&root)?;

    let last = debian.root();
    let rustc = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
        libraries(&last),
        last.join("usr/bin/rustc").display()
    );
    script(&partial.join("rustc"), &rustc)?;
    let stamp = partial.join("stamp");
    let text = format!("{RECIPE}\n{}\n{release}\n{}\n", last.display(), names.join("\n"));
    fs::write(&stamp, text).map_err(Failure::file(&stamp))?;
    remove(&debian.folder)?;
    fs::rename(partial, &debian.folder).map_err(Failure::file(&debian.folder))?;
    Ok(())
}

/// Puts ThreadSanitizer's runtime, which is LLVM's, to where the compiler looks for it.
fn sanitizer(root: &Path) -> Result {
    const RUNTIME: &str = "usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.a";
    const NAME: &str = "usr/lib/rustlib/x86_64-unknown-linux-gnu/lib/librustc-stable_rt.tsan.a";
    let found = matching(root, RUNTIME)?;
    let [runtime] = &found[..] else {
        return Err(Failure::verdict(format!("{RUNTIME} in the packages: {} files", found.len())));
    };
    let name = root.join(NAME);
    fs::hard_link(runtime, &name).map_err(Failure::file(&name))
}

fn libraries(root: &Path) -> String {
    format!("{0}/usr/lib/x86_64-linux-gnu:{0}/usr/lib", root.display())
}

/// Writes a script that can be executed.
pub(crate) fn script(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(Failure::file(path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(Failure::file(path))
}

/// `apt-get` with a state of its own. Sources, keys, mirrors and proxies are the machine's.
struct Apt {
    /// Where it works; what it downloads goes to the folder `archives` there.
    folder: PathBuf,
    /// The folder with the state of `apt-get`.
    state: PathBuf,
}

impl Apt {
    fn new(folder: &Path) -> Result<Self> {
        let state = folder.join("apt");
        for part in ["lists/partial", "archives/partial"] {
            let path = state.join(part);
            fs::create_dir_all(&path).map_err(Failure::file(&path))?;
        }
        let status = state.join("status");
        fs::write(&status, "").map_err(Failure::file(&status))?;
        Ok(Self { folder: folder.to_owned(), state })
    }

    /// Runs `apt-get` and returns what it printed. If it fails, then the packages cannot be had.
    fn get(&self, arguments: &[&str]) -> Result<String, Stop> {
        let state = self.state.display();
        let mut command = Command::new("apt-get");
        let archives = self.folder.join("archives");
        command.current_dir(if archives.exists() { &archives } else { &self.folder });
        for option in [
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures::=amd64".to_owned(),
            "APT::Architectures::=arm64".to_owned(),
            format!("Dir::State={state}"),
            // As if nothing were installed, so that nothing installed is in conflict with anything.
            format!("Dir::State::status={state}/status"),
            format!("Dir::Cache={state}"),
            "Debug::NoLocking=1".to_owned(),
            "Acquire::Retries=3".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        let text = format!("apt-get {}", arguments.first().unwrap_or(&""));
        let missing = |why: &str| Stop::Missing(format!("`{text}`: {why}"));
        let output = command
            .args(arguments)
            .env("LC_ALL", "C")
            .output()
            .map_err(|error| missing(&error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let errors: Vec<_> = said.lines().filter(|line| line.starts_with("E:")).collect();
            return Err(missing(&errors.join("; ")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The packages to be unpacked, as `apt-get download` wants them, and the compiler's release.
    fn packages(&self, needed: Version) -> Result<(Vec<String>, String), Stop> {
        let simulated =
            self.get(&[&["-s", "install", "--no-install-recommends"], ROOTS].concat())?;
        let all = to_install(&simulated);
        let version = |name: &str| {
            let package = all.iter().find(|package| package.name == name);
            package.map(|package| package.version.clone())
        };
        let Some(compiler) = version("rustc-web") else {
            return Err(Stop::Missing("apt-get has no rustc-web".to_owned()));
        };
        let release = compiler.split(['+', '-', '~']).next().unwrap_or_default().to_owned();
        if Version::of(&release).is_none_or(|found| found < needed) {
            let why = format!("the newest rustc-web is {compiler}, and {needed} is needed");
            return Err(Stop::Missing(why));
        }
        if version("rust-web-src").as_ref() != Some(&compiler) {
            let why = format!("rust-web-src is not of the compiler's version, {compiler}");
            return Err(Stop::Missing(why));
        }
        let installed = installed();
        let mut wanted = Vec::new();
        for Package { name, version } in &all {
            if OURS.iter().any(|part| name.contains(part)) || !installed.contains(name) {
                wanted.push(format!("{name}={version}"));
            }
            if name.starts_with("libstd-rust-web") {
                wanted.push(format!("{name}:arm64={version}"));
            }
            // ThreadSanitizer's runtime, of the LLVM that the compiler uses.
            if let Some(llvm) = name.strip_prefix("libllvm") {
                wanted.push(format!("libclang-rt-{llvm}-dev={version}"));
            }
        }
        Ok((wanted, release))
    }
}

/// A package that `apt-get` would install.
#[derive(Debug, PartialEq)]
struct Package {
    /// Its name.
    name: String,
    /// Its version.
    version: String,
}

/// Reads the output of a simulated `apt-get install`: `Inst NAME (VERSION ARCHIVE [ARCHITECTURE])`.
fn to_install(simulated: &str) -> Vec<Package> {
    let lines = simulated.lines().filter_map(|line| line.strip_prefix("Inst "));
    let package = |line: &str| {
        let (name, rest) = line.split_once(" (")?;
        let version = rest.split([' ', ')']).next()?;
        // A package that the machine has in another version would have that in brackets.
        let name = name.split(' ').next()?;
        Some(Package { name: name.to_owned(), version: version.to_owned() })
    };
    lines.filter_map(package).collect()
}

/// The packages that this machine has; none if it cannot say.
fn installed() -> BTreeSet<String> {
    let mut command = Command::new("dpkg-query");
    command.args(["-W", "-f", "${db:Status-Status} ${Package}\n"]);
    let told = command.output().map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&told);
    text.lines().filter_map(|line| line.strip_prefix("installed ")).map(str::to_owned).collect()
}

/// A release of Rust, without what follows its third number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

impl Version {
    fn of(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.').map(|number| number.parse().ok());
        let mut next = || numbers.next().unwrap_or(Some(0));
        Some(Self(next()?, next()?, next()?))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The oldest compiler that the workspace admits.
fn needed() -> Result<Version> {
    let manifest = shell::root().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(Failure::file(&manifest))?;
    let line = text.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.and_then(|version| Version::of(version.trim_matches('"')));
    version.ok_or_else(|| Failure::verdict("Cargo.toml: `rust-version = \"…\"` is not there"))
}

fn remove(path: &Path) -> Result {
    let removed = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(Failure::file(path))
}

/// Returns the entries of a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).map_err(Failure::file(folder))?;
    let paths: Result<Vec<_>, _> = read.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(Failure::file(folder))?;
    paths.sort();
    Ok(paths)
}

/// The paths below `root` that match `pattern`, in which a part may end with `*`.
pub(crate) fn matching(root: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/') {
        let mut next = Vec::new();
        for folder in found.iter().filter(|folder| folder.is_dir()) {
            match part.strip_suffix('*') {
                Some(start) => {
                    let starts = |path: &PathBuf| {
                        path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(start))
                    };
                    next.extend(entries(folder)?.into_iter().filter(starts));
                }
                None => next.push(folder.join(part)),
            }
        }
        found = next;
    }
    found.retain(|path| path.exists());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_installation_is_read() {
        let said = "Reading package lists...\nInst rustc-web (1.96.0+dfsg1-1~deb12u2 Debian:12 [amd64])\n\
                    Inst libllvm22 [1:21] (1:22.1.8-1 Debian:12 [amd64]) []\nConf rustc-web (1 x [amd64])\n";
        let package =
            |name: &str, version: &str| Package { name: name.into(), version: version.into() };
        let expected =
            [package("rustc-web", "1.96.0+dfsg1-1~deb12u2"), package("libllvm22", "1:22.1.8-1")];
        assert_eq!(to_install(said), expected);
    }

    #[test]
    fn versions_are_compared_by_number() {
        let version = |text| Version::of(text).unwrap();
        assert!(version("1.95") < version("1.95.1") && version("1.9.0") < version("1.95"));
        assert_eq!(version("1.95"), version("1.95.0"));
        assert_eq!(Version::of("nightly"), None);
        assert!(needed().unwrap() >= version("1.95"));
    }

    #[test]
    fn a_folder_that_is_not_what_its_stamp_says_is_refused() {
        let folder = std::env::temp_dir().join(format!("stanchion-debian-{}", std::process::id()));
        fs::create_dir_all(folder.join("root/usr/src/rustc-1/src")).unwrap();
        let debian = Debian { folder: folder.clone() };
        let root = debian.root().display().to_string();
        script(&debian.rustc(), "#!/bin/sh\necho release: 1.96.0\n").unwrap();
        let check = |stamp: &str, needed| {
            fs::write(folder.join("stamp"), stamp).unwrap();
            debian.check(needed)
        };
        let right = format!("{RECIPE}\n{root}\n1.96.0\nrustc-web=1.96.0\n");
        let right = [
            check(&right, Version(1, 95, 0)),
            check("recipe 0\n/\n1.96.0\n", Version(1, 95, 0)),
            check(&format!("{RECIPE}\n/elsewhere\n1.96.0\n"), Version(1, 95, 0)),
            check(&format!("{RECIPE}\n{root}\n1.97.0\n"), Version(1, 95, 0)),
            check(&right, Version(1, 97, 0)),
            check(RECIPE, Version(1, 95, 0)),
        ]
        .map(|checked| checked.is_ok());
        let found = matching(&folder, "root/usr/src/rustc-*/src").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(right, [true, false, false, false, false, false]);
        assert_eq!(found, [folder.join("root/usr/src/rustc-1/src")]);
    }
}
