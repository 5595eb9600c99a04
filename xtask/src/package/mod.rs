//! `cargo xtask package`: the crates as they would be published, used as a stranger would.
//!
//! Inside the workspace a crate sees files that it will not have once it is packaged, features that
//! another member switched on, and the workspace's profiles. So this task does what happens to a
//! package that is published:
//!
//! 1. [`members`] finds the members that are published. [`assemble`] copies them into a workspace
//!    of their own, in which each twin has its sources. `cargo package` makes an archive of each.
//! 2. [`contents`] checks each manifest and each archive: licences, keywords, categories, size.
//! 3. [`registry`] makes a registry of these archives and of what they depend on. From here on
//!    cargo knows no other registry, no network and no workspace of ours.
//! 4. Each package is unpacked and built by itself, `--locked` by the lock in it, with each of its
//!    sets of features; then its documentation tests run, and its documentation is built as docs.rs
//!    builds it.
//! 5. A stranger's crate is built and tested from the registry.
//! 6. [`installed`] installs the command and runs it.
//!
//! CI leaves out the rest of 4 and 6 but the check of each set of features: [`brief`].

mod assemble;
mod contents;
mod installed;
pub(crate) mod members;
mod registry;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::ci::FEATURES;
use crate::failure::{Failure, Result};
use crate::shell;

use assemble::{assemble, copy, read, write};
use members::{Member, published};
use registry::Registry;

/// The crate of `examples/downstream`.
const STRANGER: &str = "journal";

/// The most packages that a crate resolves to, itself included, with its default features. Both are
/// for programs that want a lock and not much else.
const SMALL: [(&str, usize); 2] = [("stanchion-spin", 9), ("stanchion-competitive", 9)];

/// The acts beside making and checking the packages.
#[derive(Args)]
pub(crate) struct Options {
    /// Stop when the archives are made and checked
    #[arg(long)]
    list: bool,
    /// Also run all of `stanchion study --quick` with the installed command
    #[arg(long, conflicts_with = "list")]
    study: bool,
}

/// Packages, unpacks, builds, tests and installs.
pub(crate) fn package(options: &Options) -> Result {
    let packages = Packages::new()?;
    if options.list {
        return Ok(());
    }
    packages.registry()?.try_all(options.study)
}

/// Packages, unpacks, and checks that each package compiles with each set of its features. Where
/// the packages of others cannot be fetched, it only makes and checks ours.
pub(crate) fn brief() -> Result {
    let packages = Packages::new()?;
    if let Err(why) = registry::fetch(&packages.assembled) {
        println!("SKIPPED: the packages are made and checked, and not built by themselves: {why}");
        return Ok(());
    }
    packages.registry()?.check()
}

/// As [`package`], without the whole study.
pub(crate) fn whole() -> Result {
    Packages::new()?.registry()?.try_all(false)
}

/// Assembles the published members in the folder `name` of the target folder's `package-check`.
pub(crate) fn assembled(name: &str) -> Result<PathBuf> {
    let folder = shell::target().join("package-check").join(name);
    emptied(&folder)?;
    assemble(&published()?, &folder)?;
    Ok(folder)
}

fn emptied(folder: &Path) -> Result {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Failure::file(folder))?;
    }
    Ok(())
}

/// The archives, made and checked.
struct Packages {
    members: Vec<Member>,
    /// The workspace that they were made in.
    assembled: PathBuf,
    /// The folder that they are in.
    archives: PathBuf,
}

impl Packages {
    fn new() -> Result<Self> {
        let members = published()?;
        let room = shell::target().join("package-check");
        let (assembled, built) = (room.join("assembled"), room.join("archives"));
        emptied(&assembled)?;
        emptied(&built)?;
        assemble(&members, &assembled)?;
        // Quiet, because it says of each test that it is not in the package.
        let mut pack = shell::cargo(["package", "--quiet", "--workspace", "--no-verify"]);
        pack.args(["--allow-dirty", "--target-dir"]).arg(&built).current_dir(&assembled);
        shell::run(&mut pack)?;
        let archives = built.join("package");
        let mut wrong = Vec::new();
        for member in &members {
            let archive = archives.join(format!("{}.crate", member.full_name()));
            let found = contents::manifest(member).into_iter();
            let found = found.chain(contents::archive(member, &archive)?);
            wrong.extend(found.map(|why| format!("{}: {why}", member.name)));
        }
        if wrong.is_empty() {
            return Ok(Self { members, assembled, archives });
        }
        Err(Failure::verdict(wrong.join("\n")))
    }

    /// Makes the registry, and unpacks each package beside it.
    fn registry(self) -> Result<Unpacked> {
        let registry = Registry::new(&self.members, &self.assembled, &self.archives)?;
        let folders = self.members.iter().map(|member| registry.unpacked(member, &self.archives));
        let folders = folders.collect::<Result<Vec<_>>>()?;
        Ok(Unpacked { members: self.members, folders, registry })
    }
}

/// The packages, unpacked, and a registry that has them too.
struct Unpacked {
    members: Vec<Member>,
    /// The folder of each, in the same order.
    folders: Vec<PathBuf>,
    registry: Registry,
}

impl Unpacked {
    /// Checks that each package compiles by itself, with each set of its features, and that a
    /// stranger can use them.
    fn check(&self) -> Result {
        for (member, folder) in self.all() {
            let check = |arguments: &[&str]| {
                let whole = [&["check", "--quiet", "--locked"][..], arguments].concat();
                shell::run(&mut self.registry.cargo(folder, &whole))
            };
            println!("\n{}", member.full_name());
            let sets = FEATURES.iter().find(|(name, _)| *name == member.name);
            for set in sets.map_or(&[][..], |(_, sets)| *sets) {
                check(&["--no-default-features", "--features", set])?;
            }
            check(&[])?;
            self.small(member, folder)?;
        }
        self.stranger()
    }

    /// Counts what `member` resolves to, if it is one of [`SMALL`].
    fn small(&self, member: &Member, folder: &Path) -> Result {
        let Some((_, most)) = SMALL.iter().find(|(name, _)| *name == member.name) else {
            return Ok(());
        };
        let arguments = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none"];
        let tree = shell::output(&mut self.registry.cargo(folder, &arguments))?;
        let names: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        println!("{} packages: {names:?}", names.len());
        if names.len() <= *most {
            return Ok(());
        }
        Err(Failure::verdict(format!(
            "{} resolves to {} packages, {most} are the most",
            member.name,
            names.len()
        )))
    }

    /// Does everything.
    fn try_all(&self, study: bool) -> Result {
        self.check()?;
        for (member, folder) in self.all() {
            println!("\n{}", member.full_name());
            if member.doc_tests {
                let test = ["test", "--quiet", "--doc", "--locked"];
                shell::run(&mut self.registry.cargo(folder, &test))?;
                self.document(member, folder)?;
            }
        }
        for member in self.members.iter().filter(|member| !member.programs.is_empty()) {
            installed::installed(member, &self.registry, study)?;
        }
        Ok(())
    }

    /// Builds the documentation as docs.rs does, for this machine: with marks of what needs which
    /// feature, which only an unstable option can make.
    fn document(&self, member: &Member, folder: &Path) -> Result {
        let mut doc = self.registry.cargo(folder, &["doc", "--quiet", "--no-deps", "--locked"]);
        let docs = &member.metadata["metadata"]["docs"]["rs"];
        if docs["all-features"] == true {
            doc.arg("--all-features");
        }
        doc.env("RUSTC_BOOTSTRAP", "1").env("RUSTDOCFLAGS", "--cfg docsrs -D warnings");
        shell::run(&mut doc)
    }

    /// Tests the stranger's crate, which asks the registry for us and no path.
    fn stranger(&self) -> Result {
        let (from, to) = (shell::root().join("examples/downstream"), self.registry.path(STRANGER));
        for part in ["src", "tests"] {
            copy(&from.join(part), &to.join(part))?;
        }
        let text = read(&from.join("Cargo.toml"))?;
        let published = text.replace(", path = \"../../crates/stanchion\"", "");
        if published.contains("path =") {
            return Err(Failure::verdict(
                "examples/downstream/Cargo.toml: expected `path = \"../../crates/stanchion\"` last in its dependency",
            ));
        }
        write(&to.join("Cargo.toml"), &published)?;
        shell::run(&mut self.registry.cargo(&to, &["test"]))
    }

    fn all(&self) -> impl Iterator<Item = (&Member, &PathBuf)> {
        self.members.iter().zip(&self.folders)
    }
}
