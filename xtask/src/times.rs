//! `cargo xtask times`: how long a first hour takes, measured, and the places that say so
//! rewritten.
//!
//! Each step is run from an empty target folder of its own, as after `git clone`. A page says a
//! time between two comments, which are not shown:
//!
//! ```text
//! <!-- time: study-quick -->8 minutes<!-- /time -->
//! ```
//!
//! The help of the command takes its times from `crates/cli/src/times.rs`, a line for each, and the
//! bar of a study from `crates/cli/src/study/times.txt`. Times are rounded up.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::shell;

/// The pages that say times.
const PAGES: [&str; 4] =
    ["README.md", "CONTRIBUTING.md", "crates/cli/README.md", "crates/study/README.md"];
/// The file with the times in the help of the command.
const HELP: &str = "crates/cli/src/times.rs";
/// The file with the times for the bar of a study.
const BAR: &str = "crates/cli/src/study/times.txt";

/// A step of the first hour.
struct Step {
    /// Its name on the command line.
    name: &'static str,
    /// One line on what it measures.
    about: &'static str,
    /// Measures it, with builds in that folder; adds what was found to the list.
    run: fn(&Path, &mut Vec<Found>) -> Result,
}

const STEPS: &[Step] = &[
    Step {
        name: "study",
        about: "`cargo study --quick` from an empty target folder: compiling, the first figure, all of it; then `cargo simulate --quick`",
        run: study,
    },
    Step { name: "test", about: "`cargo test` from an empty target folder", run: test },
    Step {
        name: "bench",
        about: "`cargo bench -- --quick`: compiling from an empty target folder, and running",
        run: bench,
    },
];

/// A time by the name that pages and help know it by.
type Found = (&'static str, Duration);

/// The steps to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these steps: study, test, bench
    steps: Vec<String>,
    /// Measure each so often and take the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// Measure and print the times, and rewrite nothing
    #[arg(long)]
    dry: bool,
}

/// Measures, prints, and rewrites.
pub(crate) fn times(options: &Options) -> Result {
    let known = |name: &String| STEPS.iter().any(|step| step.name == name);
    if let Some(name) = options.steps.iter().find(|name| !known(name)) {
        let all: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Failure::verdict(format!("no step `{name}`; there are {}", all.join(", "))));
    }
    let folder = shell::target().join("times");
    let mut all: Vec<Found> = Vec::new();
    for step in STEPS {
        if options.steps.is_empty() || options.steps.iter().any(|name| name == step.name) {
            println!("{}: {}", step.name, step.about);
            for _ in 0..options.runs {
                remove(&folder)?;
                (step.run)(&folder, &mut all)?;
            }
        }
    }
    let found = medians(all);
    for (name, time) in &found {
        println!("{name:16} {:7.1} s  {}", time.as_secs_f64(), words(*time));
    }
    if !options.dry {
        rewrite(&found)?;
        if let Some(text) = bar(&folder)? {
            write(&shell::root().join(BAR), &text)?;
        }
    }
    remove(&folder)
}

/// `cargo study --quick`, as a stranger runs it.
fn study(folder: &Path, found: &mut Vec<Found>) -> Result {
    let build = ["build", "--profile", "study", "--package", "stanchion-cli"];
    let building = timed(shell::cargo(build).arg("--target-dir").arg(folder))?;
    let command = folder.join("study/stanchion");
    let out = folder.join("report");
    let begun = Instant::now();
    let mut first = None;
    let (status, _) = shell::run_showing(
        Command::new(&command).args(["study", "--quick", "--out"]).arg(&out),
        |_| {
            first.get_or_insert_with(|| begun.elapsed());
            true
        },
    )?;
    let running = begun.elapsed();
    if !status.success() {
        return Err(Failure::verdict(format!("the study ended with {status}")));
    }
    let simulated = timed(
        Command::new(&command)
            .args(["study", "--machine", "simulated", "--quick", "--out"])
            .arg(&out),
    )?;
    found.extend([
        ("study-build", building),
        ("study-first", building + first.unwrap_or_default()),
        ("study-run", running),
        ("study-quick", building + running),
        ("simulate-quick", simulated),
    ]);
    Ok(())
}

fn test(folder: &Path, found: &mut Vec<Found>) -> Result {
    found.push(("test", timed(shell::cargo(["test"]).arg("--target-dir").arg(folder))?));
    Ok(())
}

fn bench(folder: &Path, found: &mut Vec<Found>) -> Result {
    let building = timed(shell::cargo(["bench", "--no-run", "--target-dir"]).arg(folder))?;
    let running =
        timed(shell::cargo(["bench", "--target-dir"]).arg(folder).args(["--", "--quick"]))?;
    found.extend([("bench-build", building), ("bench-quick", running)]);
    Ok(())
}

fn timed(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    shell::run(command)?;
    Ok(begun.elapsed())
}

fn remove(folder: &Path) -> Result {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::file(folder)(error))
        }
        _ => Ok(()),
    }
}

/// The median of each name, in the order in which they were first found.
fn medians(all: Vec<Found>) -> Vec<Found> {
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in &all {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let median = |name: &'static str| {
        let mut times: Vec<Duration> =
            all.iter().filter(|found| found.0 == name).map(|found| found.1).collect();
        times.sort_unstable();
        (name, times[times.len() / 2])
    };
    names.into_iter().map(median).collect()
}

/// A time as pages say it: rounded up, to five seconds below two minutes and to minutes beyond.
fn words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds <= 120.0 {
        return format!("{} seconds", (seconds / 5.0).ceil().max(1.0) * 5.0);
    }
    format!("{} minutes", (seconds / 60.0).ceil())
}

fn rewrite(found: &[Found]) -> Result {
    for page in PAGES {
        let path = shell::root().join(page);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let new = found.iter().fold(text.clone(), |text, &(name, time)| {
            between(&text, &format!("<!-- time: {name} -->"), "<!-- /time -->", &words(time))
        });
        if new != text {
            write(&path, &new)?;
        }
    }
    let path = shell::root().join(HELP);
    let text = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
    let new = found.iter().fold(text, |text, &(name, time)| {
        between(&text, &format!("/* time: {name} */ \""), "\"", &words(time))
    });
    write(&path, &new)
}

/// `text` with `new` in each place between `open` and the next `close`.
fn between(text: &str, open: &str, close: &str, new: &str) -> String {
    let mut parts = text.split(open);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(open);
        match part.find(close) {
            Some(end) => {
                whole.push_str(new);
                whole.push_str(&part[end..]);
            }
            None => whole.push_str(part),
        }
    }
    whole
}

/// Returns the time of each experiment, a line for each, if a study was measured.
fn bar(folder: &Path) -> Result<Option<String>> {
    let path = folder.join("report/results.json");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let results: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::verdict(format!("{}: {error}", path.display())))?;
    let mut lines = String::from(
        "# Milliseconds of each experiment in `cargo study --quick`: `cargo xtask times study` writes them.\n",
    );
    for experiment in results["experiments"].as_array().into_iter().flatten() {
        if let (Some(id), Some(seconds)) =
            (experiment["id"].as_str(), experiment["seconds"].as_f64())
        {
            lines += &format!("{id} {:.0}\n", seconds * 1e3);
        }
    }
    Ok(Some(lines))
}

fn write(path: &Path, text: &str) -> Result {
    std::fs::write(path, text).map_err(Failure::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        let of = |seconds: f64| words(Duration::from_secs_f64(seconds));
        assert_eq!(of(0.1), "5 seconds");
        assert_eq!(of(31.0), "35 seconds");
        assert_eq!(of(121.0), "3 minutes");
        assert_eq!(of(480.0), "8 minutes");
    }

    #[test]
    fn each_marked_place_is_rewritten_and_nothing_else() {
        let open = "<!-- time: test -->";
        let text = format!(
            "a {open}old<!-- /time --> b {open}older<!-- /time --> c <!-- time: x -->y<!-- /time -->"
        );
        let new = between(&text, open, "<!-- /time -->", "9 minutes");
        let both = format!(
            "a {open}9 minutes<!-- /time --> b {open}9 minutes<!-- /time --> c <!-- time: x -->y<!-- /time -->"
        );
        assert_eq!(new, both);
        assert_eq!(between("nothing", open, "<!-- /time -->", "x"), "nothing");
    }

    #[test]
    fn the_median_of_each_is_taken() {
        let second = Duration::from_secs;
        let all = vec![("a", second(3)), ("b", second(1)), ("a", second(1)), ("a", second(2))];
        assert_eq!(medians(all), [("a", second(2)), ("b", second(1))]);
    }

    #[test]
    fn the_help_has_a_time_of_every_name_that_it_marks() {
        let text = std::fs::read_to_string(shell::root().join(HELP)).unwrap();
        for name in ["study-run", "simulate-quick"] {
            assert!(text.contains(&format!("/* time: {name} */ \"")), "{name}");
        }
    }
}
