//! A run: a machine, a seed, a body.

use crate::arena::{Identities, Slot};
use crate::failure::Failure;
use crate::scheduler::Threads;
use crate::services::{Delays, Kernel, Limits};
use crate::statistics::Statistics;
use crate::timeline::Timeline;
use crate::world::World;
use crate::{Machine, Time, inside};
use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::rc::Rc;

/// A simulation to be run.
///
/// ```
/// use stanchion_simulator::{Simulation, inside, machines};
///
/// let run = Simulation::new(machines::symmetry_a(20)).run(|| {
///     inside::work(1_000);
///     42
/// })?;
/// assert_eq!(run.result, 42);
/// assert!(run.statistics.elapsed.as_nanos() >= 1_000);
/// # Ok::<(), stanchion_simulator::Failure>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The machine.
    machine: Machine,
    /// The seed of the run's randomness.
    seed: u64,
    /// The size of a thread's stack, in bytes.
    stack_size: usize,
    /// Set if a timeline is recorded.
    timeline: bool,
    /// The number of unlabelled words to count, if words are counted.
    words: Option<usize>,
    /// The limits of the run.
    limits: Limits,
    /// The number of delays, and of the accesses among which they are.
    delays: (usize, u64),
    /// The factor by which measured times are wrong.
    mismeasured: f64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run<R> {
    /// The result of the body.
    pub result: R,
    /// The counts.
    pub statistics: Statistics,
    /// The activities of threads, if [`Simulation::timeline`] asked for it.
    pub timeline: Option<Timeline>,
}

impl Simulation {
    /// A run on `machine`: seed 0, stacks of 64 KiB, no timeline, at most 1,000 seconds of virtual
    /// time, 10^9 shared accesses and 16,384 threads.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            seed: 0,
            stack_size: 64 << 10,
            timeline: false,
            words: None,
            limits: Limits {
                time: Time::millis(1_000_000),
                accesses: 1_000_000_000,
                threads: 16_384,
            },
            delays: (0, 0),
            mismeasured: 1.0,
        }
    }

    /// The machine that it runs on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Sets the seed of the run's randomness: the machine's [jitter](Machine::jitter), the ends of
    /// the processors' slices, and the values of [`inside::entropy`].
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Bytes of each thread's stack, rounded up to 64 KiB. A thread that needs more ends the
    /// process, as on a real machine.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// Records the activities of threads and processors. It takes memory for each change of a
    /// thread's activity.
    #[must_use]
    pub fn timeline(mut self) -> Self {
        self.timeline = true;
        self
    }

    /// Counts the accesses to single words: to all that have a [label](inside::label), and to the
    /// `count` others that were waited for longest. It takes memory for each word that is touched,
    /// and a look into a map for each access.
    #[must_use]
    pub fn words(mut self, count: usize) -> Self {
        self.words = Some(count);
        self
    }

    /// Has threads stop `count` times, each at one of the run's first `among` shared accesses, and
    /// each for 1 µs to 8 ms, as the seed chooses. Another thread has the processor meanwhile. To
    /// other threads the stopped one looks [blocked](inside::Presence::Blocked), as by a page that
    /// has to be fetched.
    ///
    /// For tests: a fault that happens only if a thread is stopped at one certain point, or two
    /// are, is found by few seeds otherwise, and by none if there are as many processors as
    /// threads. `among` should be about as many accesses as the run makes
    /// ([`Statistics::accesses`]).
    #[must_use]
    pub fn delays(mut self, count: usize, among: u64) -> Self {
        self.delays = (count, among);
        self
    }

    /// Has the code measure the machine wrongly: each time that it measures once and then relies on
    /// is wrong by `factor`. For tests of policies that must not depend on a figure's accuracy.
    ///
    /// # Panics
    ///
    /// If the factor is not a positive number.
    ///
    /// ```should_panic
    /// use stanchion_simulator::{Simulation, machines};
    /// Simulation::new(machines::modern(1)).mismeasured(0.0);
    /// ```
    #[must_use]
    pub fn mismeasured(mut self, factor: f64) -> Self {
        let is_usable = factor.is_finite() && factor > 0.0;
        assert!(
            is_usable,
            "`mismeasured({factor})`: a measured time is wrong by a positive factor"
        );
        self.mismeasured = factor;
        self
    }

    /// Sets the time that the run may take, in virtual time.
    #[must_use]
    pub fn time(mut self, limit: Time) -> Self {
        self.limits.time = limit;
        self
    }

    /// Sets the number of shared accesses that the run may make.
    #[must_use]
    pub fn accesses(mut self, limit: u64) -> Self {
        self.limits.accesses = limit;
        self
    }

    /// Sets the number of threads that the run may make.
    #[must_use]
    pub fn threads(mut self, limit: usize) -> Self {
        self.limits.threads = limit;
        self
    }

    /// Runs `body` as the first thread, and all that it spawns, to the end.
    ///
    /// The calling thread does all the work: several simulations can run at the same time, one on
    /// each thread of the program.
    ///
    /// All virtual threads have one copy of the program's own `std::thread_local!`s, and one count
    /// of panics. So the first use of such a value must not wait in its initializer: a second
    /// thread would make another value, and the first one's references would go. And if a run fails
    /// while a destructor waits in a thread that unwinds, `std::thread::panicking` returns that
    /// from then on, on the calling thread.
    ///
    /// `body` borrows nothing, because a run that fails stops in its midst and never unwinds it: a
    /// thread that waits in a `std::thread::scope`, say, would not be waited for.
    ///
    /// ```compile_fail,E0373
    /// # use stanchion_simulator::{Simulation, machines};
    /// let mut count = 0;
    /// let run = Simulation::new(machines::modern(1)).run(|| count += 1);
    /// ```
    ///
    /// # Errors
    ///
    /// The machine is impossible, the body panics, nothing can happen any more, or a limit is
    /// reached: see [`Failure`].
    pub fn run<R: 'static>(&self, body: impl FnOnce() -> R + 'static) -> Result<Run<R>, Failure> {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        if inside::is_running() {
            return Err(Failure::Nested);
        }
        self.machine.check()?;
        let slot = Slot::take()
            .map_err(|error| Failure::Memory { threads: 0, error: error.to_string() })?;
        // Relaxed: only uniqueness matters.
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let (count, among) = self.delays;
        let mut kernel = Kernel::new(
            self.machine.clone(),
            Identities::new(&slot),
            Threads::new(self.timeline, self.words),
            Delays::new(self.seed, count, among),
            self.limits,
            (self.seed, number),
        );
        kernel.mismeasured = self.mismeasured;
        let mut world = World::new(kernel, slot, self.stack_size);

        let result = Rc::new(RefCell::new(None));
        let returned = Rc::clone(&result);
        let stack = world.room()?;
        let body = Box::new(move || {
            let value = body();
            *returned.borrow_mut() = Some(value);
        });
        let first = world.create(stack, (Some("main".to_owned()), None), Time::ZERO, body);
        world.kernel.scheduler.ready_at(first, Time::ZERO);
        let kernel = world.run()?;
        let result = result.take().expect("the body has ended, and did not panic");
        let (statistics, timeline) = kernel.sum_up();
        Ok(Run { result, statistics, timeline })
    }
}
