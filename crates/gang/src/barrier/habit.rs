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
//!            8 times the time has passed that staying awake has lost, twice that the next time, up to 128 times
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

/// So many phases at least are slept through, to see what that costs.
const SAMPLE: u64 = 32;

/// When this much time has been averaged, half of it is forgotten.
const WINDOW_NS: u64 = 50_000_000;

/// Sleeping lasts for 2 to this power times what was lost, and how often that is doubled.
const FACTOR_SHIFT: u64 = 3;
const DOUBLINGS: u64 = 4;

/// By what fraction sleeping is taken to have become cheaper each time that staying awake was found no worse: so it is tried again some day.
const OPTIMISM: u64 = 16;

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
    /// What phases took awake before the first that were slept through: their number, and all in all.
    count: AtomicU64,
    nanos: AtomicU64,
}

/// What a number of phases took.
struct Phases {
    count: u64,
    nanos: u64,
}

impl Phases {
    fn each(&self) -> u64 {
        self.nanos / self.count.max(1)
    }

    /// How much longer they took than if each had taken so long.
    fn lost(&self, each: u64) -> u64 {
        self.nanos.saturating_sub(self.count.saturating_mul(each))
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
            count: AtomicU64::fresh(0),
            nanos: AtomicU64::fresh(0),
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
                phase < self.until.load(Ordering::Relaxed)
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
        if self.until.load(Ordering::Relaxed) == 0 {
            return;
        }
        let asleep = self.so_far(phase).each().max(1);
        let was_sample = self.asleep.swap(asleep, Ordering::Relaxed) == 0;
        let count = self.count.load(Ordering::Relaxed);
        let awake = Phases { count, nanos: self.nanos.load(Ordering::Relaxed) };
        if was_sample && awake.each() > asleep {
            self.sleep_for(awake.lost(asleep), asleep, phase);
        } else {
            self.begin(clock::now(), phase, 0);
        }
    }

    fn was_awake(&self, phase: u64) {
        if self.until.load(Ordering::Relaxed) != 0 {
            return;
        }
        let awake = self.so_far(phase);
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep == 0 {
            self.count.store(awake.count, Ordering::Relaxed);
            self.nanos.store(awake.nanos, Ordering::Relaxed);
            self.begin(clock::now(), phase, phase + SAMPLE);
        } else if awake.each() > asleep {
            self.sleep_for(awake.lost(asleep), asleep, phase);
        } else {
            self.doublings.store(0, Ordering::Relaxed);
            self.asleep.store((asleep - asleep / OPTIMISM).max(1), Ordering::Relaxed);
            if awake.nanos > WINDOW_NS {
                let since = Ticks::from_bits(self.since.load(Ordering::Relaxed));
                let first = self.first.load(Ordering::Relaxed);
                self.begin(since.plus_nanos(awake.nanos / 2), first + awake.count / 2, 0);
            }
        }
    }

    /// Sleeps for a multiple of the time that was lost, in phases that take so long.
    fn sleep_for(&self, lost: u64, asleep: u64, phase: u64) {
        let doublings = self.doublings.load(Ordering::Relaxed);
        self.doublings.store((doublings + 1).min(DOUBLINGS), Ordering::Relaxed);
        let phases = (lost << (FACTOR_SHIFT + doublings)) / asleep;
        self.begin(clock::now(), phase, phase + phases.max(SAMPLE));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A habit that takes phases that are slept through for short.
    fn slow() -> Habit {
        let habit = Habit::new();
        habit.asleep.store(1, Ordering::Relaxed);
        habit
    }

    #[test]
    fn what_costs_more_than_sleeping_is_given_up_for_longer_and_longer() {
        let habit = slow();
        let mut phase = 1;
        let mut before = 0;
        for _ in 0..3 {
            assert!(!habit.sleeps(phase));
            std::thread::sleep(core::time::Duration::from_millis(1));
            habit.took_long(phase);
            assert!(habit.sleeps(phase));
            let doublings = habit.doublings.load(Ordering::Relaxed);
            assert!(doublings > before);
            before = doublings;
            phase = habit.until.load(Ordering::Relaxed);
            // Said to have taken next to no time, as at first.
            assert!(!habit.sleeps(phase), "awake again");
            habit.asleep.store(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_sleeping_costs_is_looked_at_first() {
        let habit = Habit::new();
        habit.took_long(10);
        assert!(habit.sleeps(10) && habit.sleeps(9 + SAMPLE));
        habit.sleeps(10 + SAMPLE);
        assert_ne!(habit.asleep.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_costs_less_than_sleeping_is_kept() {
        let habit = Habit::new();
        habit.asleep.store(u64::MAX / 2, Ordering::Relaxed);
        habit.took_long(1_000);
        assert!(!habit.sleeps(1_000));
        assert!(habit.asleep.load(Ordering::Relaxed) < u64::MAX / 2, "to be tried again some day");
    }
}
