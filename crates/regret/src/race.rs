//! The race of one contestant in one cell. Threads take the lock over and over. The results are the
//! number of acquisitions, their cost, and the lengths of the waits.
//!
//! ```text
//! start line │ settle │ counted window:   │ timed window:           │ stop
//!            │        │ no clock is read  │ all acquisitions timed  │
//! ```
//!
//! One set of threads and one lock go through all of it. *Settling* takes the start out of the
//! figures. It also gives a lock that learns from its waits some waits to learn from. The *counted
//! window* gives throughput, processor time and fairness. No thread reads a clock in it, since two
//! readings would take as long as an uncontended acquisition. The *timed window* gives the waits.
//!
//! Each thread publishes its state in a word of its own: 2n + 1 while it waits for its acquisition
//! n, 2n + 2 after it has it. The thread that runs the race reads all words every 10 ms. It also
//! reads them at the borders of a window, so that slow starts and ends do not count. If a word is
//! odd and the same as before, its thread is still in the same wait. So the longest wait is known
//! over both windows. In the counted window it is known to within 20 ms, and there a starved thread
//! leaves no other trace. Two stores to a line that no other thread writes cost about a nanosecond.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::clock;

use super::turns::{Turns, Walk};
use super::waits::Waits;
use super::work::{Steps, work};
use stanchion_machine::topology;
use stanchion_study::measure::{StartLine, jain, nanos, processor_time};
use stanchion_study_locks::contender::{Contender, Shared};

/// A lock that races: a mutex, or a lock that threads take to read or to write.
pub(crate) trait Subject: Send + Sync {
    /// Makes a free lock.
    fn new() -> Self;

    /// Runs `section` under the lock. `reads` says that the section only reads; a mutex need not
    /// care.
    fn enter<R>(&self, reads: bool, section: impl FnOnce(Held<'_>) -> R) -> R;
}

/// The data that a section may use.
pub(crate) enum Held<'a> {
    /// The section holds the lock alone.
    Write(&'a mut Shared),
    /// The section may have others beside it.
    Read(&'a Shared),
}

impl Held<'_> {
    /// Returns the data, to read.
    fn shared(&self) -> &Shared {
        match self {
            Self::Write(shared) => shared,
            Self::Read(shared) => shared,
        }
    }
}

impl<L: Contender> Subject for L {
    fn new() -> Self {
        Contender::new()
    }

    #[inline(always)]
    fn enter<R>(&self, _: bool, section: impl FnOnce(Held<'_>) -> R) -> R {
        self.with(|shared| section(Held::Write(shared)))
    }
}

/// The parameters of a race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race<'a> {
    /// The number of threads.
    pub(crate) threads: usize,
    /// The processors that the threads are pinned to, in turn; none if the kernel places them.
    pub(crate) pins: &'a [usize],
    /// The mean work of a lap in the first and the second phase.
    pub(crate) laps: [Steps; 2],
    /// The differences of the laps.
    pub(crate) turns: &'a Turns,
    /// The length of a phase; without end if the phases are the same.
    pub(crate) phase: Option<Duration>,
    /// Sleeps in critical sections, if there are any.
    pub(crate) naps: Option<Naps>,
    /// The time before the first window.
    pub(crate) settle: Duration,
    /// The length of the counted window.
    pub(crate) window: Duration,
    /// The length of the window in which every acquisition is timed.
    pub(crate) timed: Duration,
}

impl Race<'_> {
    /// Pins the calling thread, which is thread `index`, for as long as it holds the result. If the
    /// system refuses, the thread stays where the kernel puts it.
    fn pin(&self, index: usize) -> Option<topology::Pinned> {
        let processor = self.pins.get(index % self.pins.len().max(1))?;
        topology::pin(*processor).ok()
    }
}

/// The holder of one section in `every` sleeps for `length`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naps {
    /// Sections of all threads from one sleep to the next.
    pub(crate) every: u64,
    /// The time of one sleep.
    pub(crate) length: Duration,
}

/// The results of a race.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Acquisitions a second; with phases the geometric mean of both, so that each weighs the same.
    pub(crate) throughput: f64,
    /// Nanoseconds of processor time for an acquisition, waiting and work included; with phases the
    /// geometric mean of both.
    pub(crate) cost: f64,
    /// Jain's index of the threads' acquisitions.
    pub(crate) fairness: f64,
    /// The median of the nanoseconds that locking took.
    pub(crate) p50: f64,
    /// The nanoseconds that 99 % of the acquisitions did not exceed.
    pub(crate) p99: f64,
    /// The nanoseconds that 99.9 % of the acquisitions did not exceed.
    pub(crate) p999: f64,
    /// The nanoseconds of the longest wait in both windows.
    pub(crate) longest: f64,
}

impl Figures {
    /// Returns the figures with those of the waits of the timed window.
    pub(crate) fn with_waits(self, waits: &Waits) -> Self {
        Self {
            p50: waits.quantile(0.5),
            p99: waits.quantile(0.99),
            p999: waits.quantile(0.999),
            longest: self.longest.max(waits.longest()),
            ..self
        }
    }
}

/// The words that all threads read before each lap. The thread that runs the race writes them a few
/// times a second.
#[derive(Default)]
#[repr(align(128))]
struct Orders {
    /// One of the constants below.
    order: AtomicU32,
    /// The phase that it is now: `inside << 32 | outside`.
    steps: AtomicU64,
}

/// No clock is read.
const COUNT: u32 = 0;
/// Each acquisition is timed.
const TIME: u32 = 1;
/// The race is over.
const STOP: u32 = 2;

/// A thread's word.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU64);

impl Steps {
    fn to_bits(self) -> u64 {
        u64::from(self.inside) << 32 | u64::from(self.outside)
    }

    fn from_bits(bits: u64) -> Self {
        Self { inside: (bits >> 32) as u32, outside: bits as u32 }
    }
}

/// Runs `race` on a new lock of type `L`. Returns the waits of the timed window as well.
pub(crate) fn run<L: Subject>(race: &Race<'_>) -> (Figures, Waits) {
    let lock = L::new();
    let threads = race.threads;
    let orders = Orders::default();
    // Relaxed, here and at every other access to the orders and the words: they order nothing, and
    // joining the threads orders what is added up afterwards.
    orders.steps.store(race.laps[0].to_bits(), Ordering::Relaxed);
    let words: Vec<Word> = (0..threads).map(|_| Word::default()).collect();
    let line = StartLine::default();
    let (figures, waits) = thread::scope(|scope| {
        let runners: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(index, word)| {
                let (line, lock, orders) = (&line, &lock, &orders);
                scope.spawn(move || {
                    let _pinned = race.pin(index);
                    line.wait();
                    laps(lock, orders, word, race.turns.walk(index, threads), race.naps)
                })
            })
            .collect();
        line.open_when(threads);
        let mut watch = Watch::new(race, &words, &orders);
        watch.during(race.settle);
        let figures = watch.counted(race.window);
        orders.order.store(TIME, Ordering::Relaxed);
        watch.during(race.timed);
        orders.order.store(STOP, Ordering::Relaxed);
        let (mut waits, mut writes) = (Waits::default(), 0);
        for runner in runners {
            let (own, wrote) =
                runner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            waits.add(&own);
            writes += wrote;
        }
        let counter = lock.enter(false, |held| held.shared().counter);
        assert_eq!(counter, writes, "the lock let two threads in at once");
        (Figures { longest: watch.longest, ..figures }, waits)
    });
    (figures.with_waits(&waits), waits)
}

/// Takes the lock until the race is over, on one of its threads. Returns the waits of the timed
/// window, and the number of sections that wrote.
fn laps<L: Subject>(
    lock: &L,
    orders: &Orders,
    word: &Word,
    mut walk: Walk<'_>,
    naps: Option<Naps>,
) -> (Waits, u64) {
    let mut waits = Waits::default();
    let (mut had, mut writes): (u64, u64) = (0, 0);
    loop {
        let mean = Steps::from_bits(orders.steps.load(Ordering::Relaxed));
        let turn = walk.next();
        let steps = turn.of(mean);
        let order = orders.order.load(Ordering::Relaxed);
        if order == STOP {
            return (waits, writes);
        }
        word.0.store(2 * had + 1, Ordering::Relaxed);
        had += 1;
        writes += u64::from(!turn.reads);
        if order == COUNT {
            lock.enter(turn.reads, |held| {
                word.0.store(2 * had, Ordering::Relaxed);
                section(held, steps.inside, naps);
            });
        } else {
            let asked = clock::now();
            let entered = lock.enter(turn.reads, |held| {
                let entered = clock::now();
                word.0.store(2 * had, Ordering::Relaxed);
                section(held, steps.inside, naps);
                entered
            });
            waits.note(entered.nanos_since(asked));
        }
        work(steps.outside);
    }
}

#[inline]
fn section(held: Held<'_>, steps: u32, naps: Option<Naps>) {
    match held {
        Held::Write(shared) => {
            shared.counter += 1;
            if let Some(naps) = naps
                && shared.counter.is_multiple_of(naps.every)
            {
                thread::sleep(naps.length);
            }
        }
        Held::Read(shared) => {
            black_box(shared.counter);
        }
    }
    work(steps);
}

/// The thread that runs the race, between start and stop.
struct Watch<'a> {
    /// The parameters.
    race: &'a Race<'a>,
    /// Each thread's word.
    words: &'a [Word],
    /// The words by which this thread directs the others.
    orders: &'a Orders,
    /// The current one of the two phases.
    phase: usize,
    /// The start of the current phase.
    phase_began: Instant,
    /// The words when they were last looked at, and since when each has been as it is.
    seen: Vec<(u64, Instant)>,
    /// The longest wait seen, in nanoseconds.
    longest: f64,
    /// The counts of each phase.
    tallies: [Tally; 2],
    /// The border from which the next tally counts.
    last: Mark,
}

/// The counts of one phase.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Sections of all threads together.
    acquisitions: u64,
    /// Nanoseconds of wall-clock time.
    elapsed: f64,
    /// Nanoseconds that all threads together had a processor.
    processor_time: f64,
}

/// A border of a window.
struct Mark {
    /// Sections of all threads since the race began.
    acquisitions: u64,
    /// The time at which the words were read.
    at: Instant,
    /// The processor time of this process so far.
    processor_time: Duration,
}

impl Mark {
    fn here(words: &[Word]) -> Self {
        let acquisitions = words.iter().map(|word| word.0.load(Ordering::Relaxed) / 2).sum();
        Self { acquisitions, at: Instant::now(), processor_time: processor_time() }
    }
}

impl<'a> Watch<'a> {
    /// The time between two looks at the words. Waits are known to within twice that.
    const BEAT: Duration = Duration::from_millis(10);

    fn new(race: &'a Race<'a>, words: &'a [Word], orders: &'a Orders) -> Self {
        let now = Instant::now();
        Self {
            race,
            words,
            orders,
            phase: 0,
            phase_began: now,
            seen: words.iter().map(|_| (0, now)).collect(),
            longest: 0.0,
            tallies: [Tally::default(); 2],
            last: Mark::here(words),
        }
    }

    /// Lets the threads run for `time`, and returns throughput, cost and fairness.
    fn counted(&mut self, time: Duration) -> Figures {
        self.tallies = [Tally::default(); 2];
        self.last = Mark::here(self.words);
        let before = self.each();
        self.during(time);
        self.tally();
        let each: Vec<f64> =
            self.each().iter().zip(&before).map(|(now, before)| (now - before) as f64).collect();
        // A phase without an acquisition counts as one acquisition, since the logarithm of zero
        // would decide the mean.
        let mean = |figure: fn(&Tally, f64) -> f64| {
            let seen: Vec<f64> = (self.tallies.iter().filter(|tally| tally.elapsed > 0.0))
                .map(|tally| figure(tally, tally.acquisitions.max(1) as f64).ln())
                .collect();
            (seen.iter().sum::<f64>() / seen.len() as f64).exp()
        };
        Figures {
            throughput: mean(|tally, acquisitions| acquisitions * 1e9 / tally.elapsed),
            cost: mean(|tally, acquisitions| tally.processor_time / acquisitions),
            fairness: jain(&each),
            ..Figures::default()
        }
    }

    /// Lets the threads run for `time`, changes phases, and looks for long waits.
    fn during(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let now = Instant::now();
            self.look(now);
            if now >= until {
                return;
            }
            let mut pause = (until - now).min(Self::BEAT);
            if let Some(phase) = self.race.phase {
                let over = self.phase_began + phase;
                if now >= over {
                    self.change_phase(now);
                    continue;
                }
                pause = pause.min(over - now);
            }
            thread::sleep(pause);
        }
    }

    fn look(&mut self, now: Instant) {
        for (word, seen) in self.words.iter().zip(&mut self.seen) {
            let word = word.0.load(Ordering::Relaxed);
            if word != seen.0 {
                *seen = (word, now);
            } else if word % 2 == 1 {
                self.longest = self.longest.max(nanos(now - seen.1));
            }
        }
    }

    fn change_phase(&mut self, now: Instant) {
        self.tally();
        self.phase = 1 - self.phase;
        self.phase_began = now;
        self.orders.steps.store(self.race.laps[self.phase].to_bits(), Ordering::Relaxed);
    }

    /// Adds the counts since the last mark to the tally of the current phase.
    fn tally(&mut self) {
        let mark = Mark::here(self.words);
        let tally = &mut self.tallies[self.phase];
        tally.acquisitions += mark.acquisitions - self.last.acquisitions;
        tally.elapsed += nanos(mark.at - self.last.at);
        tally.processor_time += nanos(mark.processor_time.saturating_sub(self.last.processor_time));
        self.last = mark;
    }

    fn each(&self) -> Vec<u64> {
        self.words.iter().map(|word| word.0.load(Ordering::Relaxed) / 2).collect()
    }
}
