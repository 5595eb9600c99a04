//! The first example of each library's README, as the program of a crate that depends on it by
//! path.
//!
//! A documentation test sees the whole workspace: all dependencies of the crate, and what the crate
//! is called inside. A user has one dependency, and copies the example into `main`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::package::members::{Member, published};
use crate::shell;

/// The sentence of a README by which a library is no more than a part of the command.
const PART: &str = "part of the `stanchion` command";

/// Writes such a crate for each published library that is for users, builds and runs it.
pub(crate) fn examples() -> Result {
    let room = shell::target().join("downstream").join("first");
    if room.exists() {
        fs::remove_dir_all(&room).map_err(Failure::file(&room))?;
    }
    for member in published()?.iter().filter(|member| member.library && member.twin_of.is_none()) {
        let readme = shell::root().join(&member.folder).join("README.md");
        if fs::read_to_string(&readme).map_err(Failure::file(&readme))?.contains(PART) {
            continue;
        }
        let (manifest, runs) = crate_for(member, &room)?;
        let does = if runs { "run" } else { "build" };
        let mut run = shell::cargo([does, "--quiet", "--manifest-path"]);
        // A user is in the folder of the crate.
        run.current_dir(manifest.parent().unwrap_or(&room));
        run.arg(&manifest).env("CARGO_TARGET_DIR", shell::target().join("downstream"));
        shell::run(&mut run)?;
    }
    Ok(())
}

/// Writes the crate, and returns the path of its manifest, and whether the program is to be run.
fn crate_for(member: &Member, room: &Path) -> Result<(PathBuf, bool)> {
    let library = shell::root().join(&member.folder);
    let readme = library.join("README.md");
    let text = fs::read_to_string(&readme).map_err(Failure::file(&readme))?;
    let (example, runs) = first(&text).ok_or_else(|| {
        Failure::verdict(format!("{}: no example (```rust) in it", readme.display()))
    })?;
    let name = format!("first-{}", member.name);
    let folder = room.join(&name);
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{} = {{ path = {library:?} }}\n{}\n[workspace]\n",
        member.name,
        others(member, &example.join("\n"))
    );
    let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(Failure::file(&path));
    let source = folder.join("src");
    fs::create_dir_all(&source).map_err(Failure::file(&source))?;
    write(source.join("main.rs"), &program(&example))?;
    write(folder.join("Cargo.toml"), &manifest)?;
    // The versions that everything here was tested with.
    let lock = shell::root().join("Cargo.lock");
    fs::copy(&lock, folder.join("Cargo.lock")).map_err(Failure::file(&lock))?;
    Ok((folder.join("Cargo.toml"), runs))
}

/// Returns the dependencies that a reader of the example adds: crates of others that it names.
fn others(member: &Member, example: &str) -> String {
    let known = member.metadata["dependencies"].as_array().into_iter().flatten();
    let known = known.filter(|dependency| dependency["path"].is_null());
    let mut lines = BTreeMap::new();
    for dependency in known {
        let Some((name, version)) = dependency["name"].as_str().zip(dependency["req"].as_str())
        else {
            continue;
        };
        let named = example.contains(&format!("{}::", name.replace('-', "_")));
        // The crate's tests have the features of a reader's program. It may need fewer itself.
        let is_of_tests = dependency["kind"] == "dev";
        if named && (is_of_tests || !lines.contains_key(name)) {
            let features = &dependency["features"];
            lines.insert(
                name,
                format!("{name} = {{ version = {version:?}, features = {features} }}\n"),
            );
        }
    }
    lines.into_values().collect()
}

/// Returns the lines of the first block of Rust in `readme`, and whether they are to be run.
fn first(readme: &str) -> Option<(Vec<&str>, bool)> {
    let mut lines = readme.lines();
    let fence = lines.find(|line| *line == "```rust" || line.starts_with("```rust,"))?;
    let example = lines.take_while(|line| !line.starts_with("```")).collect();
    Some((example, !fence.contains("no_run")))
}

/// Returns the example as a program, with what its author hid from readers: lines after `# `.
fn program(example: &[&str]) -> String {
    let lines = example.iter().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let lines: Vec<_> = lines.collect();
    if lines.iter().any(|line| line.starts_with("fn main()")) {
        return lines.join("\n");
    }
    let fallible = lines.iter().any(|line| line.starts_with("Ok::<"));
    let result = if fallible { " -> Result<(), Box<dyn std::error::Error>>" } else { "" };
    let body = lines.iter().map(|line| {
        let ends = fallible && line.starts_with("Ok::<");
        if ends { "Ok(())" } else { *line }
    });
    format!("fn main(){result} {{\n{}\n}}\n", body.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_of_rust_is_taken() {
        let readme = "# A\n```sh\ncargo\n```\n```rust,no_run\nlet a = 1;\n# let b = 2;\n```\n```rust\nlet c = 3;\n```\n";
        assert_eq!(first(readme), Some((vec!["let a = 1;", "# let b = 2;"], false)));
        assert_eq!(first("```rust\nf();\n```\n"), Some((vec!["f();"], true)));
        assert_eq!(first("none"), None);
    }

    #[test]
    fn an_example_becomes_a_program() {
        assert_eq!(
            program(&["let a = 1;", "# let b = 2;"]),
            "fn main() {\nlet a = 1;\nlet b = 2;\n}\n"
        );
        assert_eq!(
            program(&["f()?;", "# Ok::<(), Error>(())"]),
            "fn main() -> Result<(), Box<dyn std::error::Error>> {\nf()?;\nOk(())\n}\n"
        );
        assert_eq!(program(&["fn main() {}"]), "fn main() {}");
    }
}
