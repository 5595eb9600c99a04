//! The strategies on this computer, and beside them pools, ours and those of others, and threads of
//! the system.

use stanchion_applications::null_threads::{Costs, Options, Sweep};
use stanchion_machine::wait::Patient;
use stanchion_spin::contention::MEASURED;

use super::Curve;
use super::grid::{Cell, Grid};
use super::peers::{self, Chains, PEERS, Peer};
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::{Precision, Repeated, lower_quartile, sweep_until};
use stanchion_study_programs::all89::{self, Row};

/// The strategies. Processors spin only for a while, since another program may have taken the
/// processor for which they wait.
static ROWS: [Row; all89::ROWS] = all89::rows::<Patient, MEASURED>();

/// Measures all strategies to `precision`. A thread computes for `user` nanoseconds on average.
/// `decides(row, column)` says whether a cell decides the claim.
pub(in super::super) fn run(
    context: &Context,
    user: u64,
    precision: Precision,
    decides: impl Fn(usize, usize) -> bool,
) -> Result<(Grid, Repeated), Stop> {
    run_on(context, user, (context.within_processors(), PEERS), precision, decides)
}

/// Measures the same on these numbers of processors, with some of the peers or none.
pub(in super::super) fn run_on(
    context: &Context,
    user: u64,
    (counts, peers): (Vec<usize>, &[Peer]),
    precision: Precision,
    decides: impl Fn(usize, usize) -> bool,
) -> Result<(Grid, Repeated), Stop> {
    let threads = context.pick(200_000, 1_000_000);
    let system_threads = context.pick(2_000, 20_000);
    let rows = ROWS.len() + peers.len();
    let measure = |row: usize, processors: usize| -> Result<f64, String> {
        if let Some(peer) = row.checked_sub(ROWS.len()).map(|peer| &peers[peer]) {
            let threads = if peer.is_system { system_threads } else { threads };
            return (peer.run)(&Chains { chains: processors, threads, user });
        }
        let row = &ROWS[row];
        let each = (threads / processors as u64).max(1);
        let (costs, seed) = (Costs::default(), context.seed);
        let options = Options {
            processors,
            each,
            user_ns: user,
            threshold: Some(super::THRESHOLD),
            queues: None,
            copies: false,
            costs,
            seed,
        };
        let run = (row.run)(&options).map_err(|refused| refused.to_string())?;
        assert_eq!(run.left, processors, "{} lost a thread, or has one twice", row.name);
        Ok(run.elapsed.as_nanos() as f64 / run.threads as f64)
    };
    // A disturbance makes a cell slower.
    let quiet = |repeats: Vec<Result<f64, String>>| {
        repeats.into_iter().collect::<Result<Vec<f64>, _>>().map(lower_quartile)
    };
    let pace = |measured: &Result<f64, String>| *measured.as_ref().unwrap_or(&f64::NAN);
    let (measured, repeated) =
        sweep_until(context, (rows, &counts), precision, measure, decides, pace, quiet)?;
    let cell = |pace: Result<f64, String>| match pace {
        Ok(pace) => Ok(Cell { pace, bus: None }),
        Err(why) => Err(Stop::Failed(why)),
    };
    let measured = measured.into_iter().flatten().map(cell).collect::<Result<_, _>>()?;
    let names = ROWS.iter().map(|row| row.name).chain(peers.iter().map(|peer| peer.name));
    Ok((Grid::new(names.collect(), counts, measured), repeated))
}

/// Returns the cost of a thread with each number of runnable threads, strategy by strategy, in
/// nanoseconds.
pub(in super::super) fn latencies(context: &Context, peers: bool) -> Result<Vec<Curve>, Stop> {
    let peers = if peers { &peers::LATENCIES[..] } else { &[] };
    let processors = context.processors.len();
    let sweep = Sweep {
        processors,
        most: 2 * processors + 2,
        rounds: context.pick(500, 5_000),
        threshold: Some(super::THRESHOLD),
        settle_ns: 5_000,
        costs: Costs::default(),
        seed: context.seed,
    };
    context.plan(ROWS.len() + peers.len());
    let one = |row: &Row| {
        let found = (row.latency)(&sweep).map_err(|refused| Stop::Failed(refused.to_string()))?;
        context.step()?;
        Ok((row.name, found.iter().map(|point| (point.runnable, point.cost)).collect()))
    };
    let mut curves = ROWS.iter().map(one).collect::<Result<Vec<Curve>, Stop>>()?;
    for &(name, latencies) in peers {
        curves.push((name, latencies(&sweep).map_err(Stop::Failed)?));
        context.step()?;
    }
    Ok(curves)
}

/// Returns the notes on the measurement, for the reader of a figure.
pub(in super::super) fn notes(context: &Context, repeated: &Repeated) -> Vec<String> {
    vec![
        format!(
            "{} threads a cell, {} where each is a thread of the system; the lower quartiles of {}, strategies in turn, because what disturbs a cell makes it slower. Each processor is a \
             thread that is pinned.",
            context.pick(200_000, 1_000_000),
            context.pick(2_000, 20_000),
            repeated.words(),
        ),
        "The strategies are alone, without what a pool adds: closures, panics, waking. The rows after them are whole pools, ours among them, and threads of the system. Their tasks spawn one another in as many chains as \
         there are processors. Chili has only forks, and waits for each. The threads of these rows are not pinned, and the rows are not judged.".to_owned(),
        "All locks are the paper's: test-and-set with backoff. A thread pool of today would choose another, since here the holder of a lock may lose its processor.".to_owned(),
    ]
}
