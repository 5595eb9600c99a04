//! The threads. Each takes stars from the pool, advances them, shows where they went, and meets the
//! other threads at the end of the step.
//!
//! | lock | guards | taken |
//! | --- | --- | --- |
//! | `phase` | the number of the step, and the arrivals at its end | at both ends of a step |
//! | `pool` | the stars that no thread is advancing | twice for each chunk |
//! | `centres` | the two masses; the first user in a step advances them | once for each chunk |
//! | `band b` | a tenth of the display | once for each chunk with a star that comes or leaves |
//!
//! There are thirteen locks, as many as the paper counted. No thread holds two of them.
//!
//! # Invariants
//!
//! 1. Between two meetings all threads are in the same step, and the centres are asked for the same
//!    moment: the end of the step.
//! 2. Each star is advanced once in a step, by the thread that took its chunk, and its course
//!    depends on the centres alone. So the result is the same to the last bit whatever the threads,
//!    the chunks, the lock and the schedule.
//! 3. A watcher looks between two meetings in which no other thread does anything: it sees one
//!    moment.

use super::centres::{Encounter, STEP};
use super::display::{self, Changes, Display};
use super::outcome::{Options, Refused, Run, Share, fault};
use super::pool::Pool;
use super::stars::{Chunk, Star, stars};
use crate::barrier::{Barrier, Broken, MeetingWaits};
use crate::body::Vector;
use crate::crew::{self, Affinity, Shared};
use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use crate::waits::Waits;
use core::ops::ControlFlow;
use core::time::Duration;
use lock_api::RawMutex;
use stanchion_machine::clock;
use stanchion_machine::sync::Arc;

/// Instructions of advancing a star: some 80 operations on numbers with a fraction, a quarter of
/// them in two square roots, and what brings the numbers there.
const STAR: u64 = 400;

/// The state that a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Steps made so far.
    pub step: u64,
    /// Steps of the whole run.
    pub of: u64,
    /// The number of stars that each cell shows: [`HEIGHT`](super::HEIGHT) rows from top to bottom,
    /// each of [`WIDTH`](super::WIDTH) cells from left to right.
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
/// [`Refused`] names the option that is no good, and what would be.
///
/// # Panics
///
/// If a thread cannot be started. With the panic of a thread, if one panics, as it may if the lock
/// does.
pub fn run<L: RawMutex + Send + Sync + 'static>(options: &Options) -> Result<Run, Refused> {
    run_with(options, &|_| L::INIT, 0, &mut |_| ControlFlow::Continue(()))
}

/// Does the same as [`run`] with locks from `make` and with a `watch`. `make` gets the name of each
/// lock (`phase`, `pool`, `centres`, `band 3`). The calling thread calls `watch` with the display
/// before the first step and each `every` steps. If `watch` breaks off, the run ends there. If
/// `every` is 0, it is never called.
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
        if pinned { Affinity::Own } else { Affinity::Free },
        |processor| Worker::work(&field, 0, processor, &mut *watch),
        // Only the first watches.
        |field, thread, processor| {
            Worker::work(field, thread, processor, &mut |_| ControlFlow::Continue(()))
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

/// The data that is gathered at the barrier.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The number of steps that are over. Written by the last to arrive.
    step: u64,
    /// Set when the watcher has seen enough.
    stopped: bool,
}

/// The data under the lock of the centres.
#[derive(Debug)]
struct Course {
    /// The step that the centres have come to.
    step: u64,
    /// The centres after that step.
    encounter: Encounter,
}

impl Course {
    /// Returns the centres after `step` steps. It is never called with an earlier step than before
    /// (Invariant 1).
    fn at(&mut self, step: u64) -> [Vector; 2] {
        while self.step < step {
            self.encounter.advance(STEP);
            self.step += 1;
        }
        self.encounter.positions()
    }
}

/// The data that the threads share.
struct Field<L> {
    /// The options of the run.
    options: Options,
    /// The number of steps from one call of the watcher to the next; 0 for none.
    every: u64,
    /// The two masses.
    masses: [f64; 2],
    /// The meeting at the end of a step.
    barrier: Barrier<L, Progress>,
    /// The stars, and the chunks that are still due.
    pool: Pool<L>,
    /// The centres. Advanced by the first thread to need them in a step.
    course: Named<L, Course>,
    /// The display. Written by every thread.
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
        let positions = ledger.lock(&self.course).at(step);
        Scene {
            step,
            of: self.options.steps,
            cells: self.display.cells(ledger),
            centres: positions.map(display::pixel),
        }
    }
}

impl<L: RawMutex + Send + Sync + 'static> Shared for Field<L> {
    fn give_up(&self) {
        self.barrier.give_up();
    }
}

/// The waits of one thread.
#[derive(Debug)]
struct Recorded {
    /// The waits for named locks.
    ledger: Ledger,
    /// The waits at the barrier.
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

/// The data of one thread.
struct Worker {
    /// The number of the thread.
    thread: usize,
    /// The work that it has done.
    share: Share,
    /// The waits that it has had.
    waits: Recorded,
    /// Changes of the display that are still to be made.
    changes: Changes,
}

impl Worker {
    fn work<L: RawMutex>(
        field: &Field<L>,
        thread: usize,
        processor: Option<usize>,
        watch: &mut dyn FnMut(&Scene) -> ControlFlow<()>,
    ) -> Self {
        let share = Share { chunks: 0, processor };
        let mut worker = Self { thread, share, waits: field.waits(), changes: Changes::new() };
        // `Broken` means that another thread has panicked: the caller gets that thread's panic.
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
                self.thread,
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
        let enough =
            self.thread == 0 && watch(&field.scene(step, &mut self.waits.ledger)).is_break();
        field.barrier.meet(
            self.thread,
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
                stanchion_machine::read(&course.step);
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
