//! Building the copy's models once and running them on every mutant.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Mutant, copy, scope};
use crate::explored;
use crate::failure::{Failure, Result};
use crate::shell;

/// A test of a twin.
pub(crate) struct Model {
    /// The crate to which its twin belongs.
    room: String,
    /// The test program that has it.
    program: PathBuf,
    /// Its path in that program.
    path: String,
    /// Its name in the tables.
    name: String,
    /// Executions explored when nothing is weakened; the measure of how long it takes that is the
    /// same everywhere.
    executions: u64,
    /// The time that it took when nothing was weakened.
    took: Duration,
    /// The sites that it reaches.
    reaches: HashSet<usize>,
}

impl Model {
    /// `test`, of which only the committed table says how much it explores.
    fn unmeasured(test: &Test, executions: u64) -> Self {
        let Test { room, program, path, name } = test.clone();
        // Slower than any that was measured.
        let took = Duration::from_micros(250).saturating_mul(executions.try_into().unwrap_or(0));
        Self { room, program, path, name, executions, took, reaches: HashSet::new() }
    }
}

/// The fate of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The model that failed.
    Killed { model: String, how: How },
    /// The number of models that reach the site. None failed.
    Survived { models: usize },
    /// No model reaches the site.
    Unreached,
    /// None failed, and this one ran out of time.
    Undecided { model: String },
    /// Not tried: the table names no model.
    Unnamed,
}

/// The way in which a model failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// A race, an assertion, a deadlock.
    Failed,
    /// An execution that does not end: more branches than the model may have.
    BranchLimit,
}

/// The message of loom then.
const BRANCH_LIMIT: &str = "Model exceeded maximum number of branches";

/// The most processor time that a model may take on a mutant, beyond four times what it takes
/// unweakened.
const TIME: Duration = Duration::from_secs(20);

/// A test that has not been run.
#[derive(Clone)]
struct Test {
    /// The crate to which its twin belongs.
    room: String,
    /// The test program that has it.
    program: PathBuf,
    /// Its path in that program.
    path: String,
    /// Its name in the tables.
    name: String,
}

/// Returns the name that the tables have for the test at `path` of a program: without the module of
/// its file, if the program has several files.
fn name(program: &Path, path: &str) -> String {
    let together =
        program.file_name().is_some_and(|file| file.to_string_lossy().starts_with("together-"));
    let inside = path.split_once("::").filter(|_| together);
    inside.map_or(path, |(_, inside)| inside).to_owned()
}

/// Builds the models that may reach `mutants`, runs each once unweakened, and notes what it
/// reaches.
pub(crate) fn build(tree: &Path, mutants: &[Mutant]) -> Result<Vec<Model>> {
    unweakened_all(&tests(tree, mutants)?)
}

/// Builds the models that may reach `mutants`.
fn tests(tree: &Path, mutants: &[Mutant]) -> Result<Vec<Test>> {
    let lowest =
        scope::ROOMS.iter().position(|room| mutants.iter().any(|mutant| mutant.room == *room));
    let rooms = &scope::ROOMS[lowest.unwrap_or(0)..];
    let mut tests = Vec::new();
    for (room, program) in programs(tree, rooms)? {
        let mut listing = Command::new(&program);
        let all = shell::output(listing.args(["--list", "--format", "terse"]))?;
        let ignored = shell::output(Command::new(&program).args([
            "--list",
            "--format",
            "terse",
            "--ignored",
        ]))?;
        let named = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
        };
        let ignored = named(&ignored);
        let paths = named(&all).into_iter().filter(|path| !ignored.contains(path));
        tests.extend(paths.map(|path| Test {
            room: room.to_owned(),
            program: program.clone(),
            name: name(&program, &path),
            path,
        }));
    }
    Ok(tests)
}

fn unweakened_all(tests: &[Test]) -> Result<Vec<Model>> {
    let models = in_parallel(tests.len(), |at, worker| unweakened(tests[at].clone(), worker))?;
    if models.is_empty() {
        return Err(Failure::verdict(
            "the twins of these crates have no models: nothing can say whether an ordering is needed",
        ));
    }
    Ok(models)
}

/// Returns the fate of each mutant in the model that `killer` names for it. That model must pass
/// when nothing is weakened.
///
/// Why not all models that reach it: the sweep has done that, and written down which model fails.
/// That model failing again is all the proof there is of the ordering.
///
/// `cargo test` shows of the original sources that a named model passes unweakened. Here it is only
/// tried that the copy asks as they do: one named model of each program, the one that explores the
/// least, must pass. (All of them were two thirds of the time.)
pub(crate) fn named(
    tree: &Path,
    mutants: &[Mutant],
    killer: impl Fn(&Mutant) -> Option<String> + Sync,
) -> Result<Vec<Outcome>> {
    let names: HashSet<String> = mutants.iter().filter_map(&killer).collect();
    let mut tests = tests(tree, mutants)?;
    tests.retain(|test| names.contains(&test.name));
    let explored = explored::committed()?;
    let size = |test: &Test| explored.get(&test.name).copied().unwrap_or(u64::MAX);
    let mut least: BTreeMap<&Path, &Test> = BTreeMap::new();
    for test in &tests {
        let chosen = least.entry(&test.program).or_insert(test);
        if size(test) < size(chosen) {
            *chosen = test;
        }
    }
    let begin = Instant::now();
    let least: Vec<Test> = least.into_values().cloned().collect();
    unweakened_all(&least)?;
    println!(
        "{} models are named; the least of each program passes as it is ({:.1} s); {} mutants",
        tests.len(),
        begin.elapsed().as_secs_f64(),
        mutants.len()
    );
    each(mutants, |mutant, worker| {
        let Some(name) = killer(mutant) else { return Ok(Outcome::Unnamed) };
        // Programs of different crates may have models of that name.
        let called = tests.iter().filter(|test| test.name == name);
        let models: Vec<_> = called.map(|test| Model::unmeasured(test, size(test))).collect();
        fate(&models.iter().collect::<Vec<_>>(), mutant, worker)
    })
}

/// The test programs of the twins of `rooms`, each with its room, in their order.
///
/// One build for all, so that what is not ours is built once. Not into the folder of the other
/// tasks: to cargo the copy's packages are those of this workspace, and the two would take each
/// other's programs.
fn programs(tree: &Path, rooms: &[&'static str]) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut command =
        shell::cargo(["test", "--quiet", "--no-run", "--tests", "--message-format=json"]);
    rooms.iter().for_each(|room| _ = command.args(["-p", &format!("stanchion-{room}-loom")]));
    command.current_dir(tree).env("CARGO_TARGET_DIR", copy::folder().join("build"));
    // The seams trip lints that the sources themselves do not.
    command.env("CARGO_TERM_QUIET", "true");
    // The copy is never debugged.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let messages = shell::output(&mut command)?;
    let mut programs = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let Some(program) = message["executable"].as_str() else { continue };
        let source = message["target"]["src_path"].as_str().unwrap_or_default();
        let within = |at: &usize| source.contains(&format!("/crates/loom/{}/", rooms[*at]));
        if let Some(at) = (0..rooms.len()).find(within) {
            programs.push((at, PathBuf::from(program)));
        }
    }
    programs.sort();
    Ok(programs.into_iter().map(|(at, program)| (rooms[at], program)).collect())
}

fn command(program: &Path, path: &str) -> Command {
    let mut command = Command::new(program);
    command.args([path, "--exact", "--nocapture", "--test-threads=1"]).current_dir(copy::folder());
    command
}

fn unweakened(test: Test, worker: usize) -> Result<Model> {
    let Test { room, program, path, name } = test;
    let reached = copy::folder().join(format!("reached-{worker}"));
    std::fs::write(&reached, "").map_err(Failure::file(&reached))?;
    let log = copy::folder().join(format!("log-{worker}"));
    let begin = Instant::now();
    let mut run = command(&program, &path);
    run.env(copy::REACHED, &reached);
    let ended = shell::run_limited(&run, Duration::from_secs(600), &log)?;
    let took = begin.elapsed();
    if !ended.status.is_some_and(|status| status.success()) {
        return Err(Failure::verdict(format!(
            "{}\nthe model {name} fails with nothing weakened",
            ended.output
        )));
    }
    let text = std::fs::read_to_string(&reached).map_err(Failure::file(&reached))?;
    let reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
    let reports = explored::reported(&ended.output);
    let executions = if reports.is_empty() { u64::MAX } else { reports.values().sum() };
    Ok(Model { room, program, path, name, executions, took, reaches })
}

/// Runs every mutant, and says what became of each, in the same order.
pub(crate) fn sweep(models: &[Model], mutants: &[Mutant]) -> Result<Vec<Outcome>> {
    each(mutants, |mutant, worker| weakened(models, mutant, worker))
}

/// `outcome` of every mutant, on every processor, said as soon as it is known.
fn each(
    mutants: &[Mutant],
    outcome: impl Fn(&Mutant, usize) -> Result<Outcome> + Sync,
) -> Result<Vec<Outcome>> {
    in_parallel(mutants.len(), |at, worker| {
        let mutant = &mutants[at];
        let outcome = outcome(mutant, worker)?;
        let fate = match &outcome {
            Outcome::Killed { model, how: How::Failed } => format!("killed by {model}"),
            Outcome::Killed { model, how: How::BranchLimit } => {
                format!("killed by {model} (branch limit)")
            }
            Outcome::Survived { models } => format!("SURVIVED {models} models"),
            Outcome::Unreached => "REACHED by no model".to_owned(),
            Outcome::Undecided { model } => format!("UNDECIDED: {model} ran out of time"),
            Outcome::Unnamed => "not tried: no model is named".to_owned(),
        };
        println!("{}:{} {}: {fate}", mutant.file, mutant.line, mutant.change);
        Ok(outcome)
    })
}

fn weakened(models: &[Model], mutant: &Mutant, worker: usize) -> Result<Outcome> {
    let mut reaching: Vec<_> =
        models.iter().filter(|model| model.reaches.contains(&mutant.site)).collect();
    if reaching.is_empty() {
        return Ok(Outcome::Unreached);
    }
    // The crate's own models before those of crates above, small ones before large ones; never by
    // time, so that the table is the same on every run.
    let module = mutant
        .file
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_suffix(".rs"))
        .unwrap_or_default();
    reaching.sort_by_key(|model| {
        (
            model.room != mutant.room,
            !model.name.contains(module),
            model.executions,
            model.name.clone(),
        )
    });
    fate(&reaching, mutant, worker)
}

/// Returns the fate of `mutant` in `models`, one after the other until one fails.
fn fate(models: &[&Model], mutant: &Mutant, worker: usize) -> Result<Outcome> {
    let log = copy::folder().join(format!("log-{worker}"));
    let mut late = None;
    for model in models {
        let mut run = command(&model.program, &model.path);
        run.env(copy::WEAKEN, format!("{}:{}", mutant.site, mutant.weaker));
        let ended = shell::run_limited(&run, TIME + 4 * model.took, &log)?;
        match ended.status {
            Some(status) if status.success() => {}
            Some(_) => {
                let how = if ended.output.contains(BRANCH_LIMIT) {
                    How::BranchLimit
                } else {
                    How::Failed
                };
                return Ok(Outcome::Killed { model: model.name.clone(), how });
            }
            None => late = late.or_else(|| Some(model.name.clone())),
        }
    }
    Ok(match late {
        Some(model) => Outcome::Undecided { model },
        None => Outcome::Survived { models: models.len() },
    })
}

/// `task(0..count, worker)` on every processor; loom explores on one. The first error ends it.
fn in_parallel<T: Send>(
    count: usize,
    task: impl Fn(usize, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (next, done, task) = (&next, &done, &task);
            scope.spawn(move || {
                loop {
                    // Relaxed: a ticket and nothing else.
                    let at = next.fetch_add(1, Relaxed);
                    if at >= count {
                        return;
                    }
                    let result = task(at, worker);
                    if result.is_err() {
                        next.store(count, Relaxed);
                    }
                    done.lock().expect("no worker panics while it pushes").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics while it pushes");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
