//! The threads: each takes stars from the pool, advances them, shows where they went, and meets the
//! others at the end of the step.
//!
//! | lock | guards | taken |
//! | --- | --- | --- |
//! | `phase` | the number of the step, and who has arrived at its end | at the beginning and the end of a step |
//! | `pool` | the stars that nobody is advancing | twice for each chunk |
//! | `centres` | the two masses; the first to need them in a step advances them | once for each chunk |
//! | `band b` | a tenth of the display | once for each chunk with a star that comes to it, or leaves it |
//!
//! Thirteen locks, as many as the paper counted. No thread holds two of them.
//!
//! # Invariants
//!
//! 1. Between two meetings all threads are in the same step, and the centres are asked for the same
//!    moment: the end of the step.
//! 2. Each star is advanced once in a step, by the thread that took its chunk, and its course
//!    depends on the centres alone. So the result is the same to the last bit whatever the threads,
//!    the chunks, the lock and the schedule.
//! 3. Who watches does so between two meetings in which nobody else does anything: what it sees is
//!    one moment.

use super::centres::{Encounter, STEP};
use super::display::{self, Changes, Display};
use super::outcome::{Options, Refused, Run, Share, fault};
use super::pool::Pool;
use super::stars::{Chunk, Star, stars};
use crate::barrier::{Barrier, Broken, MeetingWaits};
use crate::body::Vector;
use crate::crew::{self, Seats, Shared};
use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use crate::waits::Waits;
use core::ops::ControlFlow;
use core::time::Duration;
use lock_api::RawMutex;
use machine::clock;
use machine::sync::Arc;

/// Instructions of advancing a star: some 80 operations on numbers with a fraction, a quarter of
/// them in two square roots, and what brings the numbers there.
const STAR: u64 = 400;

/// What who watches is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Steps made so far.
    pub step: u64,
    /// Steps of the whole run.
    pub of: u64,
    /// How many stars each cell shows: [`HEIGHT`](super::HEIGHT) rows from top to bottom, each of
    /// [`WIDTH`](super::WIDTH) cells from left to right.
    pub cells: Vec<u32>,
    /// Column and row of the centres, where they are in view.
    pub centres: [Option<(usize, usize)>; 2],
}

/// Runs with locks of type `L`.
///
/// ```
/// use stanchion_applications::galaxy::{self, Options, sequential};
/// let options = Options { stars: 500, steps: 40, threads: 2, ..Options::default() };
/// let run = galaxy::run::<parking_lot::RawMutex>(&options)?;
/// assert_eq!((run.checksum, run.fault), (sequential::run(&options)?.checksum, None));
/// # Ok::<(), galaxy::Refused>(())
/// ```
///
/// # Errors
///
/// [`Refused`] says which of the options is no good and what would be.
///
/// # Panics
///
/// If a thread cannot be started; and with the panic of a thread, should one panic, as it may if
/// the lock does.
pub fn run<L: RawMutex + Send + Sync + 'static>(options: &Options) -> Result<Run, Refused> {
    run_with(options, &|_| L::INIT, 0, &mut |_| ControlFlow::Continue(()))
}

/// [`run`] with locks from `make`, which is told the name of each (`phase`, `pool`, `centres`,
/// `band 3`), and with somebody to `watch`: the calling thread shows it the display before the
/// first step and each `every` steps, and when it breaks off, the run ends there. Never if `every`
/// is 0.
///
/// # Errors
///
/// As [`run`].
///
/// # Panics
///
/// As [`run`], and if `make` or `watch` panics.
pub fn run_with<L: RawMutex + Send + Sync + 'static>(
    options: &Options,
    make: &dyn Fn(&str) -> L,
    every: u64,
    watch: &mut dyn FnMut(&Scene) -> ControlFlow<()>,
) -> Result<Run, Refused> {
    options.check()?;
    let &Options { threads, pinned, .. } = options;
    let began = clock::now();
    let field = Field::new(*options, every, make);
    let field = Arc::new(field);

    let workers = crew::run(
        &field,
        threads,
        if pinned { Seats::Own } else { Seats::Free },
        |processor| Worker::work(&field, 0, processor, &mut *watch),
        // Only the first watches.
        |field, who, processor| {
            Worker::work(field, who, processor, &mut |_| ControlFlow::Continue(()))
        },
    );

    let elapsed = Duration::from_nanos(clock::now().nanos_since(began));
    let mut waits = field.waits();
    for worker in &workers {
        waits.ledger.merge(&worker.waits.ledger);
        waits.barrier.merge(&worker.waits.barrier);
    }
    let mut unrecorded = field.waits();
    let chunks = field.pool.empty(&mut unrecorded.ledger);
    let shown = field.display.cells(&mut unrecorded.ledger);
    let numbered = |chunk: &Chunk| (chunk.first..).zip(chunk.stars.clone());
    let contribution = |(number, star): (u64, Star)| star.contribution(number);
    let contributions = chunks.iter().flat_map(numbered).map(contribution);
    Ok(Run {
        checksum: contributions.fold(0, u64::wrapping_add),
        steps: field.barrier.with(&mut unrecorded, |progress| progress.step),
        centres: unrecorded.ledger.lock(&field.course).encounter,
        shown: shown.iter().copied().map(u64::from).sum(),
        fault: fault(chunks.iter().flat_map(|chunk| &chunk.stars), options.stars, &shown),
        elapsed,
        locks: waits.ledger.named(&field.names),
        barrier: waits.barrier,
        threads: workers.iter().map(|worker| worker.share).collect(),
    })
}

/// What is gathered at the barrier.
#[derive(Clone, Copy, Debug)]
struct Progress {
    step: u64,
    /// Who watches has seen enough.
    stopped: bool,
}

/// What the lock of the centres guards.
#[derive(Debug)]
struct Course {
    step: u64,
    encounter: Encounter,
}

impl Course {
    /// Where the centres are after `step` steps. Never asked for earlier than before (Invariant 1).
    fn at(&mut self, step: u64) -> [Vector; 2] {
        while self.step < step {
            self.encounter.advance(STEP);
            self.step += 1;
        }
        self.encounter.places()
    }
}

/// What the threads share.
struct Field<L> {
    options: Options,
    every: u64,
    masses: [f64; 2],
    barrier: Barrier<L, Progress>,
    pool: Pool<L>,
    course: Named<L, Course>,
    display: Display<L>,
    /// Of the locks, by number.
    names: Vec<String>,
}

/// The number of the lock of the barrier: it is made first.
const PHASE: usize = 0;

impl<L: RawMutex> Field<L> {
    fn new(options: Options, every: u64, make: &dyn Fn(&str) -> L) -> Self {
        let encounter = Encounter::new(options.ratio);
        let mut stars = stars(options.stars, options.seed, &encounter);
        let mut chunks: Vec<Chunk> = Vec::with_capacity(options.stars.div_ceil(options.chunk));
        let mut changes = Changes::new();
        for first in (0..options.stars).step_by(options.chunk) {
            let stars: Vec<Star> = stars.by_ref().take(options.chunk).collect();
            let shown = stars.iter().filter_map(Star::cell);
            shown.for_each(|cell| changes.add(display::Change::Comes(cell)));
            chunks.push(Chunk { first: first as u64, stars });
        }
        let mut locks = Locksmith::new(make);
        let progress = Progress { step: 0, stopped: false };
        let barrier = Barrier::with_lock(locks.raw("phase".to_owned()), options.threads, progress);
        let pace = Pace::new(options.instruction_ns);
        let pool = Pool::new(chunks, pace, &mut locks);
        let course = locks.lock("centres".to_owned(), Course { step: 0, encounter });
        let display = Display::new(pace, &mut locks);
        let names = locks.names();
        display.make(&mut changes, &mut Ledger::new(names.len()));
        let masses = encounter.bodies.map(|body| body.mass);
        Self { options, every, masses, barrier, pool, course, display, names }
    }

    fn waits(&self) -> Recorded {
        Recorded { ledger: Ledger::new(self.names.len()), barrier: Waits::default() }
    }

    fn scene(&self, step: u64, ledger: &mut Ledger) -> Scene {
        let places = ledger.lock(&self.course).at(step);
        Scene {
            step,
            of: self.options.steps,
            cells: self.display.cells(ledger),
            centres: places.map(display::pixel),
        }
    }
}

impl<L: RawMutex + Send + Sync + 'static> Shared for Field<L> {
    fn give_up(&self) {
        self.barrier.give_up();
    }
}

/// What a thread waited for.
#[derive(Debug)]
struct Recorded {
    ledger: Ledger,
    barrier: Waits,
}

impl MeetingWaits for Recorded {
    fn gathering(&mut self) -> &mut Waits {
        self.ledger.entry(PHASE)
    }

    fn barrier(&mut self) -> &mut Waits {
        &mut self.barrier
    }
}

/// What one thread keeps to itself.
struct Worker {
    who: usize,
    share: Share,
    waits: Recorded,
    changes: Changes,
}

impl Worker {
    fn work<L: RawMutex>(
        field: &Field<L>,
        who: usize,
        processor: Option<usize>,
        watch: &mut dyn FnMut(&Scene) -> ControlFlow<()>,
    ) -> Self {
        let share = Share { chunks: 0, processor };
        let mut worker = Self { who, share, waits: field.waits(), changes: Changes::new() };
        // `Broken` means that another thread has panicked: the caller will hear it from that one.
        let _ = worker.steps(field, watch);
        worker
    }

    fn steps<L: RawMutex>(
        &mut self,
        field: &Field<L>,
        watch: &mut dyn FnMut(&Scene) -> ControlFlow<()>,
    ) -> Result<(), Broken> {
        let Field { barrier, pool, options, every, .. } = field;
        let pace = Pace::new(options.instruction_ns);
        loop {
            let step = barrier.with(&mut self.waits, |progress| progress.step);
            if *every > 0 && (step % every == 0 || step == options.steps) {
                self.watch(field, step, watch)?;
            }
            let stopped = barrier.with(&mut self.waits, |progress| progress.stopped);
            if stopped || step == options.steps {
                return Ok(());
            }
            self.advance(field, step + 1);
            barrier.meet(
                self.who,
                &mut self.waits,
                |_| pace.compute(SECTION),
                |_, waits| {
                    pool.turn(&mut waits.ledger);
                    barrier.with(waits, |progress| progress.step += 1);
                },
            )?;
        }
    }

    /// The first watches, the others wait for it.
    fn watch<L: RawMutex>(
        &mut self,
        field: &Field<L>,
        step: u64,
        watch: &mut dyn FnMut(&Scene) -> ControlFlow<()>,
    ) -> Result<(), Broken> {
        let enough = self.who == 0 && watch(&field.scene(step, &mut self.waits.ledger)).is_break();
        field.barrier.meet(
            self.who,
            &mut self.waits,
            |progress| progress.stopped |= enough,
            |_, _| (),
        )
    }

    /// Takes chunks and advances them to the end of step `step`, until there are none.
    fn advance<L: RawMutex>(&mut self, field: &Field<L>, step: u64) {
        let ledger = &mut self.waits.ledger;
        let pace = Pace::new(field.options.instruction_ns);
        while let Some(mut chunk) = field.pool.take(ledger) {
            let centres = {
                let mut course = ledger.lock(&field.course);
                machine::read(&course.step);
                pace.compute(SECTION);
                course.at(step)
            };
            for star in &mut chunk.stars {
                pace.compute(STAR);
                star.advance(centres, field.masses, |change| self.changes.add(change));
            }
            field.display.make(&mut self.changes, ledger);
            field.pool.bring(chunk, ledger);
            self.share.chunks += 1;
        }
    }
}
