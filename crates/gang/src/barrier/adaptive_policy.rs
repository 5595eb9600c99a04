//! An adaptive policy, which all members of a barrier share: yield or sleep in long waits, by what
//! each has cost.
//!
//! A member that yields its processor to another member of the barrier gets it back soon. If it
//! yields to a stranger, a thread of another program that computes, it gets the processor back a
//! time slice later, some 3 ms. All other members have waited for it. A member that sleeps and is
//! woken takes its processor back from the stranger. The system does not tell which of the two it
//! is. It shows in what a phase takes on average. So both ways are tried and timed.
//!
//! ```text
//!           a wait took long, and it is not known how long phases take asleep,
//!           or they took less than they now take awake
//!   awake ──────────────────────────────────────────────────────────────────────► asleep
//!         ◄──────────────────────────────────────────────────────────────────────
//!           1 ms and 32 phases later if it was not known; else 16 times the time
//!           that staying awake has lost, twice that the next time, up to 128 times
//! ```
//!
//! An average must be long enough. With a stranger beside each member, a phase awake takes 50 ns
//! while all members are on, and 3 ms when one is taken off. Of two members on two processors both
//! are on for a time slice or so after each such phase. One phase of 3 ms and 30 000 of 50 ns are
//! 0.2 µs each, while sleeping takes 20 to 30 µs. A judgement by the first phase alone finds
//! staying awake a hundred times dearer, and is wrong by that factor. So if all members can be on
//! at once, phases awake are judged after [`MIN_AWAKE_NS`], a few slices off and on. A barrier for
//! which sleeping was right has lost that once, and at most 1/16 of its time thereafter. If there
//! are more members than processors, all are never on, and each round of yields meets each
//! stranger. There one slice says it all, and a longer wait would lose more, so
//! [`MIN_AWAKE_CROWDED_NS`] is less than one.
//!
//! Why not a policy for each member, as a mutex has: a member that sleeps makes the others wait, so
//! each would time the policies of all. Why not count the phase of the first long wait: the threads
//! of the members are just being started in it.
//!
//! # Invariants
//!
//! 1. Nothing depends on the policy but how long something takes. It is Relaxed throughout: a
//!    member that sees half of another's review decides wrongly once.

use stanchion_machine::atomic::{AtomicBool, AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Ticks;

/// A member that has waited longer looks at what phases cost. It is longer than a wait for members
/// with little to do, and shorter than a time slice.
pub(super) const LONG_NS: u64 = 50_000;

/// The least time over which phases awake are averaged before they are judged, if all members can
/// be on a processor: three time slices.
pub(super) const MIN_AWAKE_NS: u64 = 10_000_000;

/// The same time if not all members can be on a processor.
pub(super) const MIN_AWAKE_CROWDED_NS: u64 = 1_000_000;

/// For so long members sleep to see what that costs.
const SAMPLE_NS: u64 = 1_000_000;

/// So many phases a sample has at least.
const SAMPLE: u64 = 32;

/// When staying awake was no worse for so long, the cost of sleeping is forgotten: it may have
/// become cheaper. To measure it again takes a fiftieth of that. No more than so much is ever lost,
/// either: no member yields for so long, so the process was stopped.
const WINDOW_NS: u64 = 50_000_000;

/// Sleeping lasts for 2 to this power times the time that was lost.
const FACTOR_SHIFT: u64 = 4;

/// The most doublings of that factor.
const DOUBLINGS: u64 = 3;

/// The policy. Any member writes its fields, and seldom.
pub(super) struct AdaptivePolicy {
    /// Members sleep until then, in ticks; 0 while awake.
    until: AtomicU64,
    /// True while a member changes the other fields.
    reviewed: AtomicBool,
    /// When the averaged period began, in ticks.
    since: AtomicU64,
    /// The phase with which it began.
    first: AtomicU64,
    /// Nanoseconds that a phase took when members last slept; 0 if not known.
    asleep: AtomicU64,
    /// The number of times that the sleeping time has been doubled.
    doublings: AtomicU64,
    /// The least time over which phases awake are averaged.
    min_awake_ns: u64,
}

/// A number of phases, and the time that they took.
struct Phases {
    /// The number.
    count: u64,
    /// The time in nanoseconds.
    nanos: u64,
}

impl Phases {
    fn each(&self) -> u64 {
        self.nanos / self.count.max(1)
    }

    /// Returns how much longer they took than if each had taken `each` nanoseconds.
    fn lost(&self, each: u64) -> u64 {
        self.nanos.saturating_sub(self.count.saturating_mul(each)).min(WINDOW_NS)
    }
}

impl AdaptivePolicy {
    /// Creates a policy that is awake.
    pub(super) fn new(min_awake_ns: u64) -> Self {
        Self {
            until: AtomicU64::fresh(0),
            reviewed: AtomicBool::fresh(false),
            since: AtomicU64::fresh(0),
            first: AtomicU64::fresh(0),
            asleep: AtomicU64::fresh(0),
            doublings: AtomicU64::fresh(0),
            min_awake_ns,
        }
    }

    /// Returns whether members sleep in that phase.
    pub(super) fn should_sleep(&self, phase: u64, now: Ticks) -> bool {
        match self.until.load(Ordering::Relaxed) {
            0 => false,
            until if now < Ticks::from_bits(until) => true,
            // The time of sleeping is over.
            _ => {
                self.review(|| self.end_sleeping_period(phase, now));
                self.until.load(Ordering::Relaxed) != 0
            }
        }
    }

    /// Records a wait of that phase that took longer than [`LONG_NS`].
    #[cold]
    pub(super) fn record_long_wait(&self, phase: u64, now: Ticks) {
        if self.until.load(Ordering::Relaxed) == 0 {
            // The phase is over, while one that members sleep through is not.
            self.review(|| self.end_awake_period(phase + 1, now));
        }
    }

    /// Runs `review`, unless another member is at it.
    fn review(&self, review: impl FnOnce()) {
        if !self.reviewed.swap(true, Ordering::Relaxed) {
            review();
            self.reviewed.store(false, Ordering::Relaxed);
        }
    }

    fn end_sleeping_period(&self, phase: u64, now: Ticks) {
        let slept = self.current_period(phase, now);
        // Another member may have done it meanwhile.
        if self.until.load(Ordering::Relaxed) == 0 || slept.count < SAMPLE {
            return;
        }
        self.asleep.store(slept.each().max(1), Ordering::Relaxed);
        self.begin(phase, now, 0);
    }

    fn end_awake_period(&self, phase: u64, now: Ticks) {
        if self.until.load(Ordering::Relaxed) != 0 {
            return;
        }
        let asleep = self.asleep.load(Ordering::Relaxed);
        // The cost of sleeping is not known: measure it.
        if asleep == 0 {
            return self.begin(phase, now, SAMPLE_NS);
        }
        let awake = self.current_period(phase, now);
        // The average is too short to judge.
        if awake.nanos < self.min_awake_ns {
            return;
        }
        if awake.each() > asleep {
            // Sleeping is cheaper.
            let doublings = self.doublings.load(Ordering::Relaxed);
            self.doublings.store((doublings + 1).min(DOUBLINGS), Ordering::Relaxed);
            self.begin(phase, now, awake.lost(asleep) << (FACTOR_SHIFT + doublings));
        } else {
            // Staying awake is no worse.
            self.doublings.store(0, Ordering::Relaxed);
            if awake.nanos > WINDOW_NS {
                self.asleep.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Begins a period now, of sleeping for so long, or awake if that is 0.
    fn begin(&self, phase: u64, now: Ticks, sleep_ns: u64) {
        let until = if sleep_ns == 0 { 0 } else { now.plus_nanos(sleep_ns).to_bits().max(1) };
        self.since.store(now.to_bits(), Ordering::Relaxed);
        self.first.store(phase, Ordering::Relaxed);
        self.until.store(until, Ordering::Relaxed);
    }

    /// Returns the phases of the current period.
    fn current_period(&self, phase: u64, now: Ticks) -> Phases {
        let since = Ticks::from_bits(self.since.load(Ordering::Relaxed));
        let first = self.first.load(Ordering::Relaxed);
        Phases { count: phase.saturating_sub(first).max(1), nanos: now.nanos_since(since) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE_NS: u64 = 3_000_000;

    /// A barrier in a world where each phase takes as long as the test says. No other time passes.
    struct World {
        policy: AdaptivePolicy,
        phase: u64,
        nanos: u64,
    }

    impl World {
        fn new(min_awake_ns: u64) -> Self {
            Self { policy: AdaptivePolicy::new(min_awake_ns), phase: 0, nanos: 0 }
        }

        fn now(&self) -> Ticks {
            Ticks::from_bits(1).plus_nanos(self.nanos)
        }

        fn sleeps(&self) -> bool {
            self.policy.should_sleep(self.phase, self.now())
        }

        /// Passes a phase that takes so long.
        fn phase(&mut self, nanos: u64) {
            self.nanos += nanos;
            if nanos > LONG_NS {
                self.policy.record_long_wait(self.phase, self.now());
            }
            self.phase += 1;
        }

        /// Passes phases that take `asleep` or what `awake` says, until so much time has passed.
        /// Returns the part of it that was slept through.
        fn run(&mut self, nanos: u64, asleep: u64, mut awake: impl FnMut(u64) -> u64) -> f64 {
            let (end, mut slept) = (self.nanos + nanos, 0);
            while self.nanos < end {
                let before = self.nanos;
                if self.sleeps() {
                    self.phase(asleep);
                    slept += self.nanos - before;
                } else {
                    let takes = awake(self.phase);
                    self.phase(takes);
                }
            }
            slept as f64 / nanos as f64
        }
    }

    /// Returns the time of a phase with strangers: all members are on for a slice after each phase
    /// in which one was off.
    fn off_and_on(phase: u64) -> u64 {
        if phase.is_multiple_of(60_000) { SLICE_NS } else { 50 }
    }

    #[test]
    fn what_a_few_slices_show_to_be_cheap_is_kept() {
        let mut world = World::new(MIN_AWAKE_NS);
        let slept = world.run(1_000_000_000, 25_000, off_and_on);
        assert!(slept < 0.05, "{slept}");
    }

    #[test]
    fn one_slice_that_was_lost_at_first_is_not_held_against_it() {
        let mut world = World::new(MIN_AWAKE_NS);
        // Before the first phase, and then once more when it is known what sleeping costs.
        world.phase(SLICE_NS);
        world.run(2 * SAMPLE_NS, 25_000, |_| 50);
        world.phase(SLICE_NS);
        assert!(!world.sleeps());
        let slept = world.run(100_000_000, 25_000, off_and_on);
        assert!(slept < 0.05, "{slept}");
    }

    #[test]
    fn what_costs_more_than_sleeping_is_given_up_for_longer_and_longer() {
        for (min_awake, least) in [(MIN_AWAKE_NS, 0.95), (MIN_AWAKE_CROWDED_NS, 0.98)] {
            let mut world = World::new(min_awake);
            let slept = world.run(5_000_000_000, 40_000, |_| SLICE_NS);
            assert!(slept > least, "{min_awake}: {slept}");
        }
    }

    #[test]
    fn a_crowd_decides_after_one_slice_beside_its_sample() {
        let mut world = World::new(MIN_AWAKE_CROWDED_NS);
        // The threads are being started.
        world.phase(2 * SLICE_NS);
        assert!(world.sleeps(), "to see what it costs");
        while world.sleeps() {
            world.phase(40_000);
        }
        assert!(world.nanos < 3 * SLICE_NS);
        world.phase(SLICE_NS);
        assert!(world.sleeps());
        let until = world.nanos + 15 * SLICE_NS;
        while world.sleeps() {
            world.phase(40_000);
        }
        assert!(world.nanos > until, "16 times what was lost");
    }

    #[test]
    fn a_sample_has_its_phases_however_long_they_are() {
        let mut world = World::new(MIN_AWAKE_CROWDED_NS);
        world.phase(SLICE_NS);
        let first = world.phase;
        while world.sleeps() {
            world.phase(SLICE_NS);
        }
        assert_eq!(world.phase, first + SAMPLE);
        // To the tick.
        assert!(world.policy.asleep.load(Ordering::Relaxed).abs_diff(SLICE_NS) < 100);
    }

    #[test]
    fn strangers_that_come_and_go_are_noticed() {
        let mut world = World::new(MIN_AWAKE_NS);
        let calm = |world: &mut World| world.run(2_000_000_000, 25_000, |_| 1_000);
        assert!(calm(&mut world) < 0.01);
        let slept = world.run(2_000_000_000, 25_000, |_| SLICE_NS);
        assert!(slept > 0.9, "{slept}");
        // 128 times 10 ms at most, which may have begun just before they went.
        let slept = world.run(4_000_000_000, 25_000, |_| 1_000);
        assert!(slept < 0.5, "{slept}");
        assert!(calm(&mut world) < 0.01);
    }

    #[test]
    fn a_process_that_was_stopped_does_not_sleep_for_hours() {
        let mut world = World::new(MIN_AWAKE_NS);
        world.phase(SLICE_NS);
        world.run(2 * SAMPLE_NS, 25_000, |_| 1_000);
        world.phase(3_600_000_000_000);
        assert!(world.sleeps());
        world.nanos += WINDOW_NS << (FACTOR_SHIFT + DOUBLINGS);
        world.phase += SAMPLE;
        assert!(!world.sleeps());
    }
}
