//! Whether to sleep at once: a habit that all members of a barrier share, from what it has cost them to stay awake.
//!
//! A member that gives its processor away when a fellow member waits for it gets it back soon. If a stranger waits for it, who has something to
//! compute, it comes back a time slice later, some 3 ms, and all others have waited for it. One that sleeps instead, and is woken, takes its processor
//! back from the stranger. Which of the two it is cannot be asked; it shows in what a phase takes on average. So both ways are tried and timed.
//!
//! ```text
//!            a wait took long, and phases awake have taken longer than phases asleep (or nobody knows how long those take)
//!   awake ────────────────────────────────────────────────────────────────────────────────────────────────────────────────► asleep
//!         ◄────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//!            so many phases have passed as make up for what staying awake has lost, twice that the next time, up to 64 times
//! ```
//!
//! Why not a policy a member, as a mutex has: one that sleeps makes the others wait, so each would time the habits of all.
//!
//! # Invariants
//!
//! 1. Nothing depends on the habit but how long something takes. It is Relaxed throughout: a member that sees half of another's review decides wrongly
//!    once.

use machine::atomic::{AtomicBool, AtomicU64, Fresh, Ordering};
use machine::clock::{self, Ticks};

/// A wait that has taken longer makes its member look at what phases cost: more than fellow members take with little to do, less than a time slice.
pub(super) const LONG_NS: u64 = 50_000;

/// So many phases are slept through to see what that costs.
const SAMPLE: u64 = 32;

/// When this much time has been averaged, half of it is forgotten.
const WINDOW_NS: u64 = 50_000_000;

/// How often what sleeping makes up for is doubled.
const DOUBLINGS: u64 = 6;

/// The habit. All fields are shared, and seldom written.
pub(super) struct Habit {
    /// Phases with smaller numbers are slept through; 0 while awake.
    until: AtomicU64,
    /// A member is changing the others.
    reviewed: AtomicBool,
    /// When the time that is averaged began, in ticks, and with which phase.
    since: AtomicU64,
    first: AtomicU64,
    /// Nanoseconds a phase took when they were last slept through; 0 if not known.
    asleep: AtomicU64,
    /// How often sleeping has been doubled.
    doublings: AtomicU64,
}

/// What a number of phases took.
struct Phases {
    count: u64,
    nanos: u64,
}

impl Phases {
    fn each(&self) -> u64 {
        self.nanos / self.count
    }
}

impl Habit {
    /// Awake.
    pub(super) fn new() -> Self {
        Self {
            until: AtomicU64::fresh(0),
            reviewed: AtomicBool::fresh(false),
            since: AtomicU64::fresh(clock::now().to_bits()),
            first: AtomicU64::fresh(0),
            asleep: AtomicU64::fresh(0),
            doublings: AtomicU64::fresh(0),
        }
    }

    /// Whether to sleep in that phase.
    #[inline]
    pub(super) fn sleeps(&self, phase: u64) -> bool {
        match self.until.load(Ordering::Relaxed) {
            0 => false,
            until if phase < until => true,
            _ => {
                self.review(|| self.has_slept(phase));
                false
            }
        }
    }

    /// A wait of that phase took longer than [`LONG_NS`].
    #[cold]
    pub(super) fn took_long(&self, phase: u64) {
        if self.until.load(Ordering::Relaxed) == 0 {
            self.review(|| self.was_awake(phase));
        }
    }

    /// One member at a time.
    fn review(&self, review: impl FnOnce()) {
        if !self.reviewed.swap(true, Ordering::Relaxed) {
            review();
            self.reviewed.store(false, Ordering::Relaxed);
        }
    }

    fn has_slept(&self, phase: u64) {
        if self.until.load(Ordering::Relaxed) != 0 {
            self.asleep.store(self.so_far(phase).each().max(1), Ordering::Relaxed);
            self.begin(clock::now(), phase, 0);
        }
    }

    fn was_awake(&self, phase: u64) {
        if self.until.load(Ordering::Relaxed) != 0 {
            return;
        }
        let now = clock::now();
        let awake = self.so_far(phase);
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep == 0 {
            self.begin(now, phase, phase + SAMPLE);
        } else if awake.each() > asleep {
            let doublings = self.doublings.load(Ordering::Relaxed);
            let lost = awake.nanos - awake.count * asleep;
            let phases = (lost << doublings) / asleep;
            self.doublings.store((doublings + 1).min(DOUBLINGS), Ordering::Relaxed);
            self.begin(now, phase, phase + phases.max(1));
        } else {
            self.doublings.store(0, Ordering::Relaxed);
            if awake.nanos > WINDOW_NS {
                let since = Ticks::from_bits(self.since.load(Ordering::Relaxed));
                let first = self.first.load(Ordering::Relaxed);
                self.begin(since.plus_nanos(awake.nanos / 2), first + awake.count / 2, 0);
            }
        }
    }

    fn begin(&self, since: Ticks, first: u64, until: u64) {
        self.since.store(since.to_bits(), Ordering::Relaxed);
        self.first.store(first, Ordering::Relaxed);
        self.until.store(until, Ordering::Relaxed);
    }

    /// What is being averaged.
    fn so_far(&self, phase: u64) -> Phases {
        let since = Ticks::from_bits(self.since.load(Ordering::Relaxed));
        let first = self.first.load(Ordering::Relaxed);
        Phases { count: phase.saturating_sub(first).max(1), nanos: clock::now().nanos_since(since) }
    }
}
