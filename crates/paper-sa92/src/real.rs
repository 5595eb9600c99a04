//! The n-body program on this computer, over each system of threads.
//!
//! Each run has a thread of its own. That thread, and all threads that it starts, are kept to the
//! processors that the run may use. Rounds go over all settings in turn until the figures that
//! decide are known as precisely as is required, and a figure is the median.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use lock_api::RawMutex;
use stanchion_activations::{Arbiter, BuildError, Runtime};
use stanchion_applications::nbody::{
    Cache, Cached, Fork, Options, Sequential, Simulation as Cluster, Threads, Touches, plummer,
};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock};

use super::setting::{COARSE, Deciding, FINE, Measured, Program, Runs, Setting, System};
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::{Repeated, median, rounds_until};
use stanchion_study::outcome::range;
use stanchion_study_programs::sa92::{self, OnRuntime, UserLock};

/// The most kernel threads at a time.
const THREADS: usize = 1_024;

/// Returns a program with tasks of some 50 µs: about twice the cost of a kernel thread, as on the
/// paper's machine.
pub(super) fn fine(context: &Context) -> Program {
    Program { bodies: context.pick(5_000, 20_000), grain: 16, steps: 1, theta: 0.6, ..FINE }
}

/// Returns a program with tasks that miss. Its misses are shorter than the paper's, as processors
/// are faster.
pub(super) fn coarse(context: &Context) -> Program {
    Program { miss: Duration::from_millis(context.pick(1, 5)), ..COARSE }
}

/// Runs all `settings` in turn, round after round.
pub(super) fn run(
    context: &Context,
    settings: &[Setting],
    deciding: &Deciding<'_>,
) -> Result<Runs, Stop> {
    let seconds = |runs: &[&Measured]| runs.iter().map(|run| run.seconds).collect::<Vec<_>>();
    let (seen, repeated) = rounds_until(
        context,
        settings.len(),
        deciding.precision,
        |setting, _| measure(&context.processors, settings[setting]),
        |setting| (deciding.decides)(&settings[setting]),
        |runs| (deciding.figures)(&seconds(runs)),
    )?;
    let middle = |runs: &Vec<Measured>| Measured {
        seconds: median(seconds(&runs.iter().collect::<Vec<_>>())),
        ..runs[0]
    };
    Ok(Runs {
        measured: seen.iter().map(middle).collect(),
        ranges: seen.iter().map(|runs| range(runs.iter().map(|run| run.seconds))).collect(),
        repeated: Some(repeated),
    })
}

/// Measures one setting. The copies of a program begin together. Copies on activations divide the
/// processors among them, where in the paper the kernel allocates processors.
fn measure(all: &[usize], setting: Setting) -> Result<Measured, Stop> {
    let processors = &all[..setting.processors.min(all.len())];
    let begin = Barrier::new(setting.copies);
    let copy = || {
        keep_to(processors)?;
        one(setting, &begin)
    };
    let results: Vec<Result<Measured, Stop>> = std::thread::scope(|scope| {
        let copies: Vec<_> = (0..setting.copies).map(|_| scope.spawn(copy)).collect();
        let panicked = |_| Err(Stop::Failed(format!("{} panicked", setting.system.name())));
        copies.into_iter().map(|copy| copy.join().unwrap_or_else(panicked)).collect()
    });
    if is_divided(setting) {
        // All copies have ended: no program uses the arbiter's file any more.
        let _ = arbiter().map(|arbiter| std::fs::remove_file(arbiter.path()));
    }
    Ok(Measured::slowest(results.into_iter().collect::<Result<Vec<_>, _>>()?))
}

/// Returns whether the processors are divided among the copies.
fn is_divided(setting: Setting) -> bool {
    setting.copies > 1 && matches!(setting.system, System::Activations | System::Staying)
}

/// Joins the division of processors among all copies of this process.
fn arbiter() -> Result<Arbiter, Stop> {
    let joined = Arbiter::join(&format!("study-{}", std::process::id()));
    joined.map_err(|error| Stop::Failed(format!("an arbiter: {error}")))
}

/// Runs one copy.
fn one(setting: Setting, begin: &Barrier) -> Result<Measured, Stop> {
    match setting.system {
        System::Sequential => {
            begin.wait();
            Ok(program::<RawPolicyMutex<Adaptive>, _>(&Sequential, setting))
        }
        System::Kernel => {
            begin.wait();
            Ok(program::<RawPolicyMutex<AlwaysBlock>, _>(&Threads::new(THREADS), setting))
        }
        System::Competitive => {
            begin.wait();
            Ok(program::<RawPolicyMutex<Adaptive>, _>(&Threads::new(THREADS), setting))
        }
        System::User | System::Activations | System::Staying => {
            let runtime = match is_divided(setting) {
                true => divided_runtime(setting.processors),
                false => runtime(setting.system != System::User, setting.processors),
            };
            let fork = match setting.system {
                System::Staying => OnRuntime::staying(),
                // SAFETY: it spawns parts of the n-body program only.
                _ => unsafe { OnRuntime::migrating() },
            };
            begin.wait();
            Ok(fork.run(&runtime?, || program::<UserLock, _>(&fork, setting)))
        }
        System::UserModel | System::ActivationsModel => {
            Err(Stop::Failed("the models of the paper's threads run in virtual time only".into()))
        }
    }
}

/// Makes a runtime of user-level threads, with activations or without.
pub(super) fn runtime(activations: bool, processors: usize) -> Result<Runtime, Stop> {
    sa92::runtime(activations, processors).map_err(not_built)
}

/// Makes a runtime on activations. Processors are divided among all such runtimes of this process.
fn divided_runtime(processors: usize) -> Result<Runtime, Stop> {
    sa92::divided_runtime(arbiter()?, processors).map_err(not_built)
}

fn not_built(error: BuildError) -> Stop {
    Stop::Failed(format!("user-level threads: {error}"))
}

/// Runs the program from one thread of any kind.
fn program<L: RawMutex + Send + Sync, F: Fork>(fork: &F, setting: Setting) -> Measured {
    let Program { bodies, grain, theta, miss, .. } = setting.program;
    let options = Options { theta, grain, ..Options::default() };
    let began = Instant::now();
    let (cluster, touches) = if setting.system == System::Sequential {
        (steps(fork, bodies, options, setting), Touches::default())
    } else {
        let cache = Cache::<L, _>::new(bodies, setting.memory, |_| std::thread::sleep(miss));
        (steps(&Cached { fork, cache: &cache }, bodies, options, setting), cache.touches())
    };
    let seconds = began.elapsed().as_secs_f64();
    Measured { seconds, checksum: cluster.checksum(), misses: touches.misses }
}

fn steps<F: Fork>(fork: &F, bodies: usize, options: Options, setting: Setting) -> Cluster {
    let mut cluster = Cluster::new(plummer(bodies, 1), options, fork).expect("good options");
    (0..setting.program.steps).for_each(|_| cluster.step(fork));
    cluster
}

/// Keeps the calling thread, and all threads that it starts, to these processors.
#[cfg(target_os = "linux")]
pub(super) fn keep_to(processors: &[usize]) -> Result<(), Stop> {
    // SAFETY: a set without processors is all zeros.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    let known =
        processors.iter().filter(|processor| **processor < 8 * size_of::<libc::cpu_set_t>());
    for processor in known {
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_SET(*processor, &mut set) };
    }
    // SAFETY: the set is as large as is said.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Stop::Failed(format!("a thread cannot be kept to its processors: {error}")))
}

/// Does nothing: on other systems all processors are used.
#[cfg(not(target_os = "linux"))]
pub(super) fn keep_to(_processors: &[usize]) -> Result<(), Stop> {
    Ok(())
}

/// Returns the note on the runtime, for the reader of a figure.
pub(super) fn note(repeated: Option<&Repeated>) -> String {
    let told = match runtime(true, 1) {
        Ok(runtime) => runtime.capabilities().to_string(),
        Err(_) => "it cannot be built".to_owned(),
    };
    let rounds = repeated.map_or_else(String::new, |repeated| {
        format!(" Medians of {}, settings in turn.", repeated.words())
    });
    format!(
        "User-level threads are those of stanchion-activations, once with activations switched off; about them its runtime says: {told}.{rounds}"
    )
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn every_system_comes_to_the_same_places() {
        let all = stanchion_machine::topology::processors();
        let program =
            Program { bodies: 200, grain: 8, steps: 1, miss: Duration::from_micros(50), ..FINE };
        let checksum = |system, memory, copies| {
            let setting = Setting { system, processors: all.len().min(2), memory, copies, program };
            let measured = measure(&all, setting).unwrap();
            assert_eq!(
                measured.misses > 0,
                memory < 100 && system != System::Sequential,
                "{setting:?}"
            );
            measured.checksum
        };
        let expected = checksum(System::Sequential, 100, 1);
        for system in System::COMPARED.into_iter().chain([System::Staying]) {
            for (memory, copies) in [(100, 1), (30, 1), (100, 2)] {
                assert_eq!(checksum(system, memory, copies), expected, "{system:?}");
            }
        }
    }

    #[test]
    fn a_panic_of_either_half_is_the_joiners_when_both_have_ended() {
        // SAFETY: its threads count and panic, and wait for one another.
        for fork in [unsafe { OnRuntime::migrating() }, OnRuntime::staying()] {
            let runtime = runtime(true, 2).unwrap();
            let (mut first, mut second) = (0, 0);
            let panicked = |work: &mut (dyn FnMut() + Send)| {
                let caught = fork.run(&runtime, || catch_unwind(AssertUnwindSafe(work)));
                assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"of a half"));
            };
            panicked(&mut || {
                let _ = fork.join(|| first += 1, || panic!("of a half"));
            });
            panicked(&mut || {
                let _ = fork.join(|| panic!("of a half"), || second += 1);
            });
            assert_eq!((first, second), (1, 1), "{fork:?}");
        }
    }
}
