//! The strategies in virtual time, and the measurements for the model of section 5 of the paper.
//!
//! The times on the Symmetry, and their sources:
//!
//! - *Thread management, beside shared data*: 60 instructions, 20 µs. Section 3.6 has "on the order
//!   of 100"; the others are the strategy's accesses.
//! - *Writes to the own call stack*: every fifth instruction. This is an estimate. Caches write
//!   through, so each write is on the bus.
//! - *Between two looks of an idle processor*: 2.5 µs, by table 3.1, iteration of null loop.
//! - *Unit of the backoff's delays*: 8 µs, a critical section, by section 4.4 (see
//!   `registry::DELAY_NS`). Section 4.5: "both take less than 10".
//!
//! On other machines all of them are in proportion to the machine's scale.

use std::cell::Cell as StdCell;

use lock_api::RawMutex;
use stanchion_formulas::contention::{ContentionError, Demand, fit_bus_demand, fit_spinning};
use stanchion_simulator::{Failure, Machine, Run, Time, inside, machines};

use sim_applications::null_threads::{Costs, Latency, MAX_THREADS, Options, Path, Sweep};
use sim_machine::wait::Spin;
use sim_programs::all89::{self, Lock, Row, row};
use sim_threadpool::strategy::{Fifo, LocalFreeList, LocalReadyQueue, Random};

use super::Curve;
use super::grid::{Cell, Grid};
use stanchion_simulated_locks::bus;
use stanchion_simulated_locks::copies::Copies;
use stanchion_simulated_locks::registry::{DELAY_NS, LOCKS, of_way};
use stanchion_simulated_locks::shared::turn;
use stanchion_study::context::{Context, Stop};
use stanchion_study::simulation::cells;
use stanchion_study::simulation::simulation;
use stanchion_study_locks::list::Way;

/// The strategies. Processors only spin, as the paper's did.
static ROWS: [Row; all89::ROWS] = all89::rows::<Spin, DELAY_NS>();

/// The limit of virtual time, longer than any cell.
const LONGEST: Time = Time::millis(10_000_000);

/// The time of an instruction on the Symmetry.
const INSTRUCTION_NS: f64 = 333.0;
/// The time of a turn of an empty loop on the Symmetry (table 3.1).
const LOOK_NS: f64 = 2_500.0;
/// The instructions of creating, starting and finishing a thread, and the number of writes in each.
const PATHS: [(f64, usize); 3] = [(24.0, 5), (18.0, 4), (18.0, 3)];
/// The time between two events of figure 3.4 on the Symmetry. It is longer than the pause of an
/// idle processor that has found nothing.
const SETTLE_NS: f64 = 400_000.0;
/// Mean computation of a thread where it computes.
pub(in super::super) const USER_NS: f64 = 300_000.0;

/// A machine, and its speed beside the Symmetry.
#[derive(Clone, Debug)]
pub(in super::super) struct Place {
    /// The simulated machine.
    pub(in super::super) machine: Machine,
    /// Nanoseconds of the machine for one of the Symmetry.
    pub(in super::super) speed: f64,
}

impl Place {
    pub(in super::super) fn of(machine: &Machine) -> Self {
        let speed = machine.scale / machines::symmetry_a(1).scale;
        Self { machine: machine.clone(), speed }
    }

    fn nanos(&self, of_symmetry: f64) -> u64 {
        (of_symmetry * self.speed).round() as u64
    }

    fn costs(&self) -> Costs {
        let [create, start, finish] = PATHS.map(|(instructions, writes)| Path {
            nanos: self.nanos(instructions * INSTRUCTION_NS),
            writes,
        });
        Costs { create, start, finish, look_ns: self.nanos(LOOK_NS) }
    }

    /// Converts nanoseconds of the code's clock to the machine's.
    fn machine_nanos(&self, nanos: f64) -> f64 {
        nanos * self.machine.scale
    }
}

/// Measures all strategies. A thread computes for `user` nanoseconds of the Symmetry on average.
pub(in super::super) fn run(context: &Context, place: &Place, user: f64) -> Result<Grid, Stop> {
    run_on(context, place, user, counts(context, place))
}

/// Measures the same on these numbers of processors.
pub(in super::super) fn run_on(
    context: &Context,
    place: &Place,
    user: f64,
    counts: Vec<usize>,
) -> Result<Grid, Stop> {
    let threads = threads(context);
    let settings = Grid::settings(ROWS.len(), &counts);
    context.plan(settings.len());
    let measured = cells(context, &place.machine, &settings, |&(row, processors)| {
        let each = threads / processors as u64;
        let options = options(context, place, processors, each, user);
        measure(place, &ROWS[row], &options).map(|(cell, _)| cell)
    })?;
    Ok(Grid::new(ROWS.iter().map(|row| row.name).collect(), counts, measured))
}

/// Measures a null thread on all processors by the number of local ready queues, from one to one
/// for each processor. Section 3.5: "there is a tradeoff between latency and throughput in choosing
/// the number of queues".
pub(in super::super) fn queues(
    context: &Context,
    place: &Place,
) -> Result<Vec<(usize, Cell)>, Stop> {
    let counts = counts(context, place);
    let processors = counts.last().copied().unwrap_or(1);
    let each = threads(context) / processors as u64;
    let measured = cells(context, &place.machine, &counts, |&queues| {
        let options = options(context, place, processors, each, 0.0);
        let options = Options { queues: Some(queues), ..options };
        measure(place, &ROWS[super::READY], &options).map(|(cell, _)| cell)
    })?;
    Ok(counts.into_iter().zip(measured).collect())
}

/// Returns the numbers of processors, up to the largest that the program takes.
fn counts(context: &Context, place: &Place) -> Vec<usize> {
    context.within(place.machine.processors.min(MAX_THREADS))
}

/// Returns the number of threads that a cell executes, on all processors together.
fn threads(context: &Context) -> u64 {
    context.pick(20_000, 200_000)
}

fn options(context: &Context, place: &Place, processors: usize, each: u64, user: f64) -> Options {
    Options {
        processors,
        each,
        user_ns: place.nanos(user),
        threshold: Some(super::THRESHOLD),
        queues: None,
        copies: false,
        costs: place.costs(),
        seed: context.seed,
    }
}

/// Measures a cell, and the nanoseconds that a processor spent in critical sections for each
/// thread.
fn measure(place: &Place, row: &'static Row, options: &Options) -> Result<(Cell, f64), Failure> {
    let (program, options) = (row.run, *options);
    let Run { result: (run, sections), statistics, .. } =
        simulation(&place.machine, options.seed).time(LONGEST).run(move || {
            IN_SECTIONS.set(Time::ZERO);
            let run = program(&options).unwrap_or_else(|refused| panic!("{refused}"));
            (run, IN_SECTIONS.get())
        })?;
    assert_eq!(run.left, options.processors, "{} lost a thread, or has one twice", row.name);
    let elapsed = place.machine_nanos(run.elapsed.as_nanos() as f64);
    let busy = statistics.accesses.occupied.as_picos() as f64 / 1e3 / elapsed;
    let threads = run.threads as f64;
    Ok((
        Cell { pace: elapsed / threads, bus: bus::miss(&place.machine).map(|_| busy.min(1.0)) },
        sections.as_picos() as f64 / 1e3 / threads,
    ))
}

/// Returns the cost of a thread with each number of runnable threads on `processors`, strategy by
/// strategy, in nanoseconds of the machine.
pub(in super::super) fn latencies(
    context: &Context,
    place: &Place,
    processors: usize,
) -> Result<Vec<Curve>, Stop> {
    let sweep = Sweep {
        processors,
        // An odd number of creations a round: the creator fetches free blocks by the half list, and
        // so not always at the same number of threads.
        most: 2 * processors + 2,
        rounds: context.pick(40, 160),
        // Of the code's clock.
        threshold: Some(super::THRESHOLD),
        settle_ns: (SETTLE_NS * place.speed / place.machine.scale).round() as u64,
        costs: place.costs(),
        seed: context.seed,
    };
    context.plan(ROWS.len());
    let rows: Vec<usize> = (0..ROWS.len()).collect();
    let measured = cells(context, &place.machine, &rows, |&row| {
        let program = ROWS[row].latency;
        let simulation = simulation(&place.machine, context.seed).time(LONGEST);
        let run = simulation
            .run(move || program(&sweep).unwrap_or_else(|refused| panic!("{refused}")))?;
        let point = |point: &Latency| (point.runnable, place.machine_nanos(point.cost));
        Ok(run.result.iter().map(point).collect::<Vec<_>>())
    })?;
    Ok(ROWS.iter().map(|row| row.name).zip(measured).collect())
}

/// The inputs of the model of section 5, measured as in the paper, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Demands {
    /// Creating, starting and finishing a thread outside critical sections.
    pub(in super::super) outside: Demand,
    /// One of its two critical sections.
    pub(in super::super) section: Demand,
    /// The largest difference of a fitted curve from the measurements, as a share.
    pub(in super::super) worst: f64,
}

/// The strategies that the model describes, with a lock that measures its sections: as
/// [`super::FREE_LIST`] and [`super::READY`].
const MODELLED: [Row; 2] = [
    row::<LocalFreeList<Timed<Lock<Spin, DELAY_NS>>>, Spin>(),
    row::<LocalReadyQueue<Timed<Lock<Spin, DELAY_NS>>, Fifo, Random>, Spin>(),
];

/// The critical sections in a thread's life: it is enqueued, and dequeued.
pub(in super::super) const VISITS: f64 = 2.0;

/// Measures the demands as in section 5.1. Each processor has a copy of all data and runs the code
/// on it, so that only the bus slows it. The model's curve is fitted to the times, once for
/// everything and once for the sections alone.
pub(in super::super) fn demands(context: &Context, place: &Place) -> Result<[Demands; 2], Stop> {
    static ROWS: [Row; 2] = MODELLED;
    let counts = counts(context, place);
    let each = context.pick(300, 2_000);
    let settings = Grid::settings(ROWS.len(), &counts);
    let measured = cells(context, &place.machine, &settings, |&(row, processors)| {
        let options = Options { copies: true, ..options(context, place, processors, each, 0.0) };
        measure(place, &ROWS[row], &options)
            .map(|(cell, sections)| (processors as u32, cell.pace * processors as f64, sections))
    })?;
    let of = |measured: &[(u32, f64, f64)]| -> Result<Demands, ContentionError> {
        let whole: Vec<(u32, f64)> = measured.iter().map(|&(count, all, _)| (count, all)).collect();
        let inside: Vec<(u32, f64)> =
            measured.iter().map(|&(count, _, sections)| (count, sections)).collect();
        let (whole, inside) = (fit_bus_demand(&whole)?, fit_bus_demand(&inside)?);
        Ok(Demands {
            outside: Demand {
                bus: (whole.demand.bus - inside.demand.bus).max(0.0),
                cache: whole.demand.cache - inside.demand.cache,
            },
            section: Demand {
                bus: inside.demand.bus / VISITS,
                cache: inside.demand.cache / VISITS,
            },
            worst: whole.worst.max(inside.worst),
        })
    };
    let mut rows = measured.chunks(counts.len()).map(of);
    let mut next = || rows.next().expect("a chunk for each row").map_err(unfit);
    Ok([next()?, next()?])
}

/// Processors with copies of their own, beside the spinners.
const PRIVATE: usize = 12;

/// Measures, as in section 5.1, the bus time that a processor which waits for a lock asks for in
/// each section that goes by. It follows from the amount by which the waiter slows processors with
/// private copies. Returns `None` if there are too few processors, or no one bus.
pub(in super::super) fn spinning(context: &Context, place: &Place) -> Result<Option<f64>, Stop> {
    let machine = &place.machine;
    let most = machine.processors.saturating_sub(PRIVATE + 1);
    if most < 2 {
        return Ok(None);
    }
    let (sections, seed) = (context.pick(200, 2_000), context.seed);
    let turn = turn(machine);
    let private = |private: usize, sharing: usize| -> Result<f64, Failure> {
        let copies = Copies { private, sharing, sections, turn, seed };
        (LOCKS[of_way(Way::Backoff)].copies)(machine, &copies).map(|beside| beside.section)
    };
    let counts = context.within(machine.processors);
    let alone = cells(context, machine, &counts, |&count| private(count, 0))?;
    let points: Vec<(u32, f64)> = counts.iter().map(|&count| count as u32).zip(alone).collect();
    let section = fit_bus_demand(&points).map_err(unfit)?;
    let spinners = context.within(most);
    let beside = cells(context, machine, &spinners, |&spinners| private(PRIVATE, spinners + 1))?;
    let points: Vec<(u32, f64)> = spinners.iter().map(|&count| count as u32).zip(beside).collect();
    let fit = fit_spinning(section.demand, PRIVATE as u32, &points).map_err(unfit)?;
    Ok(Some(fit.each))
}

fn unfit(error: ContentionError) -> Stop {
    Stop::Failed(error.to_string())
}

thread_local! {
    /// Virtual time in critical sections, of the run that this thread is at.
    static IN_SECTIONS: StdCell<Time> = const { StdCell::new(Time::ZERO) };
}

/// A lock that adds up the time for which it is taken, held and released. It is for private copies
/// only: if processors waited for it, their waits would count too.
pub(crate) struct Timed<R>(R);

// SAFETY: the exclusion is `R`'s.
unsafe impl<R: RawMutex> RawMutex for Timed<R> {
    const INIT: Self = Self(R::INIT);
    /// With when its holder asked for it.
    type Guard = (R::Guard, Time);

    fn lock(&self) -> Self::Guard {
        let asked = inside::time();
        (self.0.lock(), asked)
    }

    fn try_lock(&self) -> Option<Self::Guard> {
        let asked = inside::time();
        self.0.try_lock().map(|guard| (guard, asked))
    }

    unsafe fn unlock(&self, (guard, asked): Self::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(guard) };
        IN_SECTIONS.set(IN_SECTIONS.get() + inside::time().since(asked));
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

/// Returns the notes on the simulated machine, for the reader of a figure.
pub(in super::super) fn notes(context: &Context, place: &Place) -> Vec<String> {
    let instructions: f64 = PATHS.iter().map(|(instructions, _)| instructions).sum();
    vec![
        format!(
            "{} threads a cell in virtual time, scaled to a million. Memory and bus are simulated, and so is all that a strategy reads and writes; what thread management computes beside is declared: \
             {instructions} instructions of {} ns, of which each fifth writes to the own call stack. The paper's path has \"on the order of 100 instructions\".",
            stanchion_study::units::grouped(threads(context)),
            stanchion_study::units::significant(INSTRUCTION_NS),
        ),
        format!(
            "All locks are the paper's: test-and-set with backoff. The unit of the delays is one critical section of the Symmetry. The code's clock is {} times as fast as the machine's.",
            stanchion_study::units::significant(place.machine.scale)
        ),
    ]
}
