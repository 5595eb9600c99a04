//! Table IV: the cost of thread operations at four levels, on one processor.
//!
//! "Marked" is the paper's other way to make the runtime's own sections safe (section 4.3). A flag
//! says that a thread is in a section, and is set and cleared each time. Here the ready list's lock
//! knows its holder instead ([`Recovering`](stanchion_spin::Recovering)). There is one list for
//! each processor. Beside it stands the same strategy with its usual lock.
//!
//! On a simulated machine the two user-level levels are the runtime's own threads, with the
//! runtime's computation charged (`simulated.rs`). Kernel threads are an input there: the machine's
//! description has their costs from this table.
//!
//! Rule of the verdict: *holds* if user-level threads are ten times as fast as kernel threads in
//! both operations, and activations cost them less than a fifth; else *differs*. *not judged* if
//! one of these ratios is not known precisely enough ([`Precision`]). Processes are slower still.
//! That is shown and not judged: a signal through a pipe is not what it was.

use stanchion_activations::Runtime;
use stanchion_simulator::Machine;
use stanchion_spin::Recovering;
use stanchion_threadpool::Strategy;
use stanchion_threadpool::strategy::{LocalReadyQueue, WorkStealing};

use super::{operations, real, simulated, upcall};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper, Simulated};
use stanchion_study::measure::{Precision, median, rounds_until};
use stanchion_study::outcome::{Comparison, Found, Outcome, Table, Verdict};
use stanchion_study::simulation::failed;
use stanchion_study::units::{percent, significant};
use stanchion_study_programs::sa92::{self, OnRuntime};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "sa92/table4",
    paper: Paper::Sa92,
    title: "Null Fork and Signal-Wait at four levels",
    claim: "Each step is an order of magnitude: user threads 34 / 37 µs, on activations 37 / 42, kernel threads 948 / 441, processes 11,300 / 1,840.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["firefly"], there).with_counterfactuals(&[SHORTER])),
    },
};

const APART: f64 = 10.0;
const ALMOST_NOTHING: f64 = 1.2;

/// A level: its name, the paper's figures in µs, and its measurement.
struct Level {
    /// The row's label.
    name: &'static str,
    /// The costs that the paper gives.
    paper: &'static str,
    /// Measures both operations.
    measure: Box<Measure>,
}

/// Null Fork and Signal-Wait, in nanoseconds.
type Measure = dyn Fn(&Context) -> Result<[f64; 2], Stop>;

/// Measures user threads with a ready list managed by strategy `S`.
fn user<S: Strategy>(
    name: &'static str,
    paper: &'static str,
    activations: bool,
) -> Result<Level, Stop> {
    let builder = Runtime::builder().processors(1).activations(activations).strategy::<S>();
    let runtime = builder.build().map_err(|error| Stop::Failed(format!("{name}: {error}")))?;
    let measure = move |context: &Context| {
        let times = context.pick(20_000, 200_000);
        Ok([
            sa92::user_fork(&runtime, OnRuntime::staying(), times),
            sa92::user_signal(&runtime, OnRuntime::staying(), times),
        ])
    };
    Ok(Level { name, paper, measure: Box::new(measure) })
}

const USER: usize = 0;
const ACTIVATIONS: usize = 1;
const KERNEL: usize = 4;

fn levels() -> Result<Vec<Level>, Stop> {
    let kernel = |context: &Context| {
        let times = context.pick(500, 5_000);
        Ok([operations::kernel_fork(times), operations::kernel_signal(4 * times)])
    };
    let mut levels = vec![
        user::<WorkStealing>("user threads", "34 / 37", false)?,
        user::<WorkStealing>("user threads on activations", "37 / 42", true)?,
        user::<LocalReadyQueue>("the same, ready lists with locks", "not tried", true)?,
        user::<LocalReadyQueue<Recovering>>("the same, sections marked", "49 / 48", true)?,
        Level { name: "kernel threads", paper: "948 / 441", measure: Box::new(kernel) },
    ];
    if cfg!(unix) {
        let processes = |context: &Context| {
            let times = context.pick(100, 1_000);
            Ok([operations::process_fork(times)?, operations::process_signal(20 * times)?])
        };
        let (name, paper) = ("processes", "11,300 / 1,840");
        levels.push(Level { name, paper, measure: Box::new(processes) });
    }
    Ok(levels)
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    // The runtimes are made on the processor that is measured, and stay there.
    let first = context.processors[..1].to_vec();
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            real::keep_to(&first)?;
            measure(context)
        });
        measured.join().unwrap_or_else(|_| Err(Stop::Failed("an operation panicked".to_owned())))
    })
}

fn measure(context: &Context) -> Result<Outcome, Stop> {
    let levels = levels()?;
    let (seen, repeated) = rounds_until(
        context,
        levels.len(),
        Precision::of(EXPERIMENT.id, context),
        |level, _| (levels[level].measure)(context),
        |level| [USER, ACTIVATIONS, KERNEL].contains(&level),
        |found| {
            let (apart, costs) = ratios(*found[0], *found[1], *found[2]);
            [apart, costs].concat()
        },
    )?;
    let middle = |runs: &Vec<[f64; 2]>| {
        [0, 1].map(|operation| median(runs.iter().map(|run| run[operation]).collect()))
    };
    let found: Vec<[f64; 2]> = seen.iter().map(middle).collect();
    let comparison = |(level, cost): (&Level, &[f64; 2])| {
        Comparison::new(
            format!("Null Fork / Signal-Wait, {}", level.name),
            format!("{} µs", level.paper),
            both(*cost),
        )
    };
    let row = |(level, of): (&Level, &[f64; 2])| {
        let over = |which: usize| significant(of[which] / found[USER][which]);
        vec![level.name.to_owned(), over(0), over(1)]
    };
    Ok(Outcome {
        comparisons: levels.iter().zip(&found).map(comparison).collect(),
        tables: vec![Table {
            title: "How many times as long as user threads".to_owned(),
            columns: ["level", "Null Fork", "Signal-Wait"].map(str::to_owned).to_vec(),
            rows: levels.iter().zip(&found).map(row).collect(),
        }],
        notes: vec![format!(
            "One processor, medians of {}, levels in turn. Null Fork makes a thread that does nothing and joins it; Signal-Wait is half of a turn of two threads that unpark each other, of \
             processes through two pipes. The first two have no lock around their ready list (work stealing), so there is no section to be marked; the paper's 49 / 48 µs are of its own \
             free lists and ready lists with explicit flags.",
            repeated.words()
        )],
        ..Outcome::new(repeated.judge(verdict(found[USER], found[ACTIVATIONS], found[KERNEL])))
    })
}

/// Runs it on a simulated machine.
fn there(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    context.plan(1);
    let [user, on, kernel] = costs(machine)?;
    context.step()?;
    let comparison = |(name, paper, cost): (&str, &str, [f64; 2])| {
        let what = format!("Null Fork / Signal-Wait, {name}");
        Comparison::new(what, format!("{paper} µs"), both(cost))
    };
    let levels = [
        ("user threads", "34 / 37", user),
        ("user threads on activations", "37 / 42", on),
        ("kernel threads", "948 / 441", kernel),
    ];
    Ok(Outcome {
        comparisons: levels.into_iter().map(comparison).collect(),
        notes: vec![format!(
            "User threads have one processor. They are those of stanchion-activations, and may migrate to another kernel thread, as in the paper. Its accesses are charged by the machine's memory, its instructions between them by the committed table, \
             {} of the machine's for one of ours. Kernel threads are an input, the machine's description.",
            simulated::COMPILER
        )],
        ..Outcome::new(verdict(user, on, kernel))
    })
}

/// Measures the two user-level levels on a simulated machine, and returns them with its kernel
/// threads: the time to make one and to switch to it, and their Signal-Wait.
fn costs(machine: &Machine) -> Result<[[f64; 2]; 3], Stop> {
    let level = |activations| {
        let found = simulated::operations(machine, activations);
        found.map_err(|failure| failed(machine, &failure))
    };
    let [signal, _] = upcall::through(machine)?;
    let fork = machine.scheduling.spawn + machine.scheduling.switch;
    Ok([level(false)?, level(true)?, [fork.as_nanos() as f64, signal]])
}

/// The piece that the simulated run lacks: a runtime as short as the paper's.
const SHORTER: Counterfactual = Counterfactual {
    name: "a runtime that executes fewer instructions",
    piece: "FastThreads made and ran a thread in 34 µs (table I), in which a CVAX executes a hundred instructions, at three million a second. Ours executes three thousand (`cargo xtask \
            costs`), beside its accesses.",
    size: "share of our instructions",
    sizes: &[1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01],
    figure: "kernel threads over user threads on activations, Null Fork and Signal-Wait",
    run: |_, machine, share| {
        let mut machine = machine.clone();
        machine.processor.compiler = Some(share * simulated::COMPILER);
        let [user, on, kernel] = costs(&machine)?;
        let (apart, _) = ratios(user, on, kernel);
        let figure = format!("{}, {}", significant(apart[0]), significant(apart[1]));
        Ok(Found { figure, verdict: verdict(user, on, kernel) })
    },
};

/// Formats the costs of both operations.
fn both([fork, signal]: [f64; 2]) -> String {
    format!("{} / {} µs", significant(fork / 1e3), significant(signal / 1e3))
}

/// Returns the costs of kernel threads over those of activations, and of these over those of user
/// threads without.
fn ratios(user: [f64; 2], on: [f64; 2], kernel: [f64; 2]) -> ([f64; 2], [f64; 2]) {
    let times = |one: [f64; 2], other: [f64; 2]| [one[0] / other[0], one[1] / other[1]];
    (times(kernel, on), times(on, user))
}

fn verdict(user: [f64; 2], on: [f64; 2], kernel: [f64; 2]) -> Verdict {
    let (apart, costs) = ratios(user, on, kernel);
    Verdict::when(
        apart.iter().all(|apart| *apart >= APART)
            && costs.iter().all(|cost| *cost < ALMOST_NOTHING),
        format!(
            "kernel threads take {} and {} times as long as user threads on activations, which take {} to fork and {} to signal and wait than user threads without",
            significant(apart[0]),
            significant(apart[1]),
            longer(costs[0]),
            longer(costs[1]),
        ),
    )
}

/// Formats the excess of an operation that takes `times` as long as another. The operation does
/// more, so it cannot be faster: a ratio below 1 is noise.
fn longer(times: f64) -> String {
    if times <= 1.0 {
        return "no longer".to_owned();
    }
    format!("{} longer", percent(times - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_for_doing_more_is_noise() {
        assert_eq!(
            [0.996, 1.0, 1.025].map(longer),
            ["no longer", "no longer", "2.50\u{a0}% longer"]
        );
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |user, on, kernel| verdict(user, on, kernel).name();
        assert_eq!(judged([34.0, 37.0], [37.0, 42.0], [948.0, 441.0]), "holds");
        assert_eq!(judged([34.0, 37.0], [37.0, 42.0], [948.0, 400.0]), "differs", "not an order");
        assert_eq!(judged([34.0, 37.0], [42.0, 42.0], [948.0, 941.0]), "differs", "a fork costs");
        assert_eq!(judged([34.0, 37.0], [37.0, 45.0], [948.0, 941.0]), "differs", "a signal costs");
    }

    #[test]
    fn every_level_is_measured() {
        assert_eq!(levels().unwrap()[KERNEL].name, "kernel threads");
        let runtime = real::runtime(true, 1).unwrap();
        let figures = [
            sa92::user_fork(&runtime, OnRuntime::staying(), 10),
            sa92::user_signal(&runtime, OnRuntime::staying(), 10),
            operations::kernel_fork(10),
            operations::kernel_signal(10),
            operations::kernel_pipes(10).unwrap(),
            operations::user_pipes(&runtime, 10).unwrap(),
        ];
        assert!(figures.iter().all(|nanos| *nanos > 0.0), "{figures:?}");
        #[cfg(unix)]
        assert!(
            operations::process_fork(3).unwrap() > 0.0
                && operations::process_signal(3).unwrap() > 0.0
        );
    }
}
