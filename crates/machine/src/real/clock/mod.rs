//! The processor's counter where the kernel's own clock is made from it, the monotonic clock
//! elsewhere.
//!
//! # How the counter is judged
//!
//! The counter is read directly only if both of these hold:
//!
//! 1. The processor says that the counter runs at one speed (x86: CPUID 0x8000_0007, EDX bit 8;
//!    aarch64: always).
//! 2. The kernel's monotonic clock is read in less than half of the time that a system call takes
//!    ([`is_short`]). The kernel answers without a system call only where it makes its clock from
//!    this counter. It watches the counter against other clocks. When they disagree it turns to a
//!    clock that only the kernel can read, and each reading becomes a system call.
//!
//! Why not read the name of the kernel's clocksource: a first wait may be a wait for a lock that
//! guards an allocator, or of a program that may not open files. So the judgement takes the
//! counter, `clock_gettime` and `futex`, and keeps its result in plain words. Only [`source`]
//! reads the name, to explain itself.
//!
//! What that loses: `kvm-clock` and the Hyper-V page are made from the counter as well, and are
//! not told from it. A virtual machine that uses them may move to a host with a counter of
//! another speed. Then times of [`Ticks`](crate::clock::Ticks) are wrong by the ratio of the two
//! speeds from there on: a waiter spins for so much too long or too short. Deadlines are not
//! touched, because they are kept on the monotonic clock. It is rare, because a hypervisor that
//! shows its guest the bit of the first condition promises one speed: it scales the counter or
//! refuses to move the guest (QEMU's `invtsc` does).
//!
//! # How its speed is found
//!
//! ```text
//! counter  a----A            b----B    anchor (a, t, A), sample (b, u, B)
//! clock       t                 u      rate = (u - t) / (b - a)
//!                                      wrong by at most (A - a + B - b) / (b - a)
//! ```
//!
//! Anchor and sample are each the narrowest of several readings. The sample is taken when its
//! distance from the anchor is 256 times the two brackets, so the error is below 0.4 %. That is
//! usually after 20 µs to 50 µs: a first waiter should not be held up for a millisecond. A
//! preemption inside a bracket makes it wide. The needed distance grows with it, so it cannot spoil
//! the rate. Later conversions refine the rate, at 16 times the distance each, until the distance
//! is a second. On aarch64 the processor states the rate and none of this is needed.
//!
//! # What a suspend does to it
//!
//! While the machine is suspended the monotonic clock stands still. The counter may run on (suspend
//! to idle) or begin anew (suspend to memory, hibernation). So a pair of readings with a suspend
//! between them says nothing of the rate:
//!
//! 1. The first rate is taken over a pair of this moment, never from an anchor of long ago. A
//!    sample with a counter that lies before its anchor's becomes the anchor.
//! 2. A refinement is thrown away, and the rate stays as it is for good, if it differs from the
//!    rate by more than 1 %, or if its counter lies before the anchor's. 1 % is more than twice
//!    what the first rate may be wrong by.
//!
//! What is left: a suspend in the 50 µs of the first pair itself makes a rate that nothing mends.

use crate::clock::{Distrust, Source};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::string::String;

mod counter;
mod monotonic;
mod once;

pub(crate) use monotonic::{instant, monotonic, monotonic_at};
use once::Once;

/// Nanoseconds per tick times 2^32; 0 while unknown. Relaxed everywhere: the number is all there is
/// to see.
static NANOS_PER_TICK: AtomicU64 = AtomicU64::new(0);
/// Ticks per nanosecond times 2^32. May be of another refinement than the above, which is as good.
static TICKS_PER_NANO: AtomicU64 = AtomicU64::new(0);
/// Conversions look again when the distance from the anchor is this, in ticks.
static REFINE_AT: AtomicU64 = AtomicU64::new(0);
/// The way in which [`now`] reads: not decided yet, by the counter, by the monotonic clock. Decided
/// once.
static READS: AtomicU64 = AtomicU64::new(UNDECIDED);
/// Where the pairs of readings that make a rate begin. Set with the first rate.
static ANCHOR: Once<Reading> = Once::new();

const UNDECIDED: u64 = 0;
const COUNTER: u64 = 1;
const MONOTONIC: u64 = 2;
const ONE: u64 = 1 << 32;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    /// The counter.
    ticks: u64,
    /// The monotonic clock, in ns.
    nanos: u64,
    /// Ticks that passed while both were read.
    width: u64,
}

#[inline]
pub(crate) fn now() -> u64 {
    match READS.load(Relaxed) {
        COUNTER => counter::read(),
        MONOTONIC => monotonic(),
        _ => first_now(),
    }
}

#[cold]
fn first_now() -> u64 {
    decide();
    now()
}

/// Returns which clock is read: decided now if it has not been.
fn decided() -> u64 {
    match READS.load(Relaxed) {
        UNDECIDED => decide(),
        reads => reads,
    }
}

#[cold]
fn decide() -> u64 {
    let trusted = counter::invariant() == Some(true) && clock_takes_no_system_call();
    let mine = if trusted { COUNTER } else { MONOTONIC };
    // The first decision stands: ticks of two clocks could not be compared.
    match READS.compare_exchange(UNDECIDED, mine, Relaxed, Relaxed) {
        Ok(_) => mine,
        Err(first) => first,
    }
}

pub(crate) fn source() -> Source {
    if decided() == COUNTER {
        return Source::Counter { instruction: counter::INSTRUCTION };
    }
    Source::Monotonic(distrust(counter::invariant(), counter::clocksource()))
}

/// Returns why the monotonic clock is read, given what the processor and the kernel say.
fn distrust(invariant: Option<bool>, clocksource: Option<String>) -> Distrust {
    match (invariant, clocksource) {
        (None, _) => Distrust::NoCounter,
        (Some(false), _) => Distrust::NotInvariant,
        (Some(true), None) => Distrust::UnknownClocksource,
        (Some(true), Some(name)) => Distrust::Clocksource(name),
    }
}

/// Compares a reading of the kernel's clock with a system call that does nothing.
#[cfg(target_os = "linux")]
fn clock_takes_no_system_call() -> bool {
    let word = 0_u32;
    let system_call = || {
        // SAFETY: `word` outlives the call, which wakes no thread: none can wait for it.
        unsafe {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, &raw const word, wake, 1);
        }
    };
    let reading = || {
        monotonic();
    };
    reading(); // loads its page
    is_short(shortest(counter::read_ordered, reading), shortest(counter::read_ordered, system_call))
}

/// Only Linux is known to make its clock from the counter wherever that takes no system call.
#[cfg(not(target_os = "linux"))]
fn clock_takes_no_system_call() -> bool {
    false
}

/// Returns whether a reading of the clock, given in ticks, is no system call. Half of a system call
/// is far from both: a reading without one takes a fifth of it or less, one with it takes longer
/// than a call that does nothing.
#[cfg(any(target_os = "linux", test))]
fn is_short(reading: u64, system_call: u64) -> bool {
    reading.saturating_mul(2) < system_call
}

/// Returns the ticks that several calls take: the least of a few attempts, because a preemption
/// makes one longer. An attempt in which the counter ran backwards says nothing.
#[cfg(any(target_os = "linux", test))]
fn shortest(read: impl Fn() -> u64, call: impl Fn()) -> u64 {
    const ATTEMPTS: usize = 4;
    const CALLS: usize = 8;
    let mut shortest = u64::MAX;
    for _ in 0..ATTEMPTS {
        let before = read();
        for _ in 0..CALLS {
            call();
        }
        if let Some(ticks) = read().checked_sub(before) {
            shortest = shortest.min(ticks);
        }
    }
    shortest
}

#[inline]
pub(crate) fn to_nanos(ticks: u64) -> u64 {
    scale(ticks, rate(&NANOS_PER_TICK, ticks), 0)
}

/// Rounds up: a wait of some nanoseconds is never one of no ticks.
#[inline]
pub(crate) fn from_nanos(nanos: u64) -> u64 {
    scale(nanos, rate(&TICKS_PER_NANO, 0), ONE - 1)
}

/// `value * rate / 2^32`, saturating.
#[inline]
fn scale(value: u64, rate: u64, round: u64) -> u64 {
    let product = u128::from(value) * u128::from(rate) + u128::from(round);
    u64::try_from(product >> 32).unwrap_or(u64::MAX)
}

/// Returns one of the two rates, found or refined first if it is time to. `distance` is a number of
/// ticks that the caller has seen pass: it tells without reading a clock that it is time.
#[inline]
fn rate(of: &AtomicU64, distance: u64) -> u64 {
    let rate = of.load(Relaxed);
    if rate == 0 || distance >= REFINE_AT.load(Relaxed) {
        return measured(of);
    }
    rate
}

#[cold]
fn measured(of: &AtomicU64) -> u64 {
    match (decided(), counter::stated_rate(), ANCHOR.get()) {
        (COUNTER, Some(per_second), _) => {
            store(Rate { nanos: 1_000_000_000, ticks: per_second }, NEVER);
        }
        (COUNTER, None, None) => {
            let (anchor, rate) = first_rate(read_both);
            // In this order: a thread that sees the anchor sees a rate to refine.
            store(rate, rate.refine_at());
            ANCHOR.get_or_make(|| anchor);
        }
        (COUNTER, None, Some(anchor)) => {
            match refined(NANOS_PER_TICK.load(Relaxed), anchor, read_both()) {
                Refined::NotYet => {}
                Refined::To(rate) => store(rate, rate.refine_at()),
                Refined::NoMore => REFINE_AT.store(NEVER, Relaxed),
            }
        }
        _ => store(Rate { nanos: 1, ticks: 1 }, NEVER),
    }
    of.load(Relaxed)
}

/// Brackets the needed distance is made of; see the head of the file.
const BRACKETS_APART: u64 = 256;
/// A rate taken over this many nanoseconds is final.
const FINAL_NS: u64 = 1_000_000_000;
/// For [`REFINE_AT`].
const NEVER: u64 = u64::MAX;

/// So many nanoseconds in so many ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rate {
    /// A time in ns.
    nanos: u64,
    /// The ticks of the counter in that time.
    ticks: u64,
}

impl Rate {
    fn nanos_per_tick(self) -> u64 {
        ratio(self.nanos, self.ticks)
    }

    /// Returns the distance from the anchor at which the next sample is to be taken.
    fn refine_at(self) -> u64 {
        if self.nanos >= FINAL_NS { NEVER } else { self.ticks.saturating_mul(16) }
    }
}

/// `of / to * 2^32`, at least 1.
fn ratio(of: u64, to: u64) -> u64 {
    let ratio = (u128::from(of) << 32) / u128::from(to.max(1));
    u64::try_from(ratio).unwrap_or(u64::MAX).max(1)
}

/// The rate that two readings make.
#[derive(Debug, PartialEq)]
enum Pair {
    TooClose,
    Rate(Rate),
    /// The counter ran backwards in between: the machine was suspended.
    Backwards,
}

fn pair(anchor: Reading, sample: Reading) -> Pair {
    let Some(ticks) = sample.ticks.checked_sub(anchor.ticks) else { return Pair::Backwards };
    let nanos = sample.nanos.saturating_sub(anchor.nanos);
    let needed = BRACKETS_APART.saturating_mul(anchor.width.saturating_add(sample.width));
    if ticks > 0 && nanos > 0 && ticks >= needed {
        Pair::Rate(Rate { nanos, ticks })
    } else {
        Pair::TooClose
    }
}

/// Returns a first rate, waiting as long as it takes, and where it began.
fn first_rate(mut read: impl FnMut() -> Reading) -> (Reading, Rate) {
    let mut anchor = read();
    loop {
        for _ in 0..64 {
            core::hint::spin_loop();
        }
        let sample = read();
        match pair(anchor, sample) {
            Pair::Rate(rate) => return (anchor, rate),
            Pair::TooClose => {}
            Pair::Backwards => anchor = sample,
        }
    }
}

/// The outcome of a refinement.
#[derive(Debug, PartialEq)]
enum Refined {
    NotYet,
    To(Rate),
    NoMore,
}

/// Refines `known` nanoseconds per tick (times 2^32); see the head of the file.
fn refined(known: u64, anchor: Reading, sample: Reading) -> Refined {
    match pair(anchor, sample) {
        Pair::TooClose => Refined::NotYet,
        Pair::Rate(rate) if rate.nanos_per_tick().abs_diff(known) <= known / 100 => {
            Refined::To(rate)
        }
        Pair::Rate(_) | Pair::Backwards => Refined::NoMore,
    }
}

fn store(rate: Rate, refine_at: u64) {
    REFINE_AT.store(refine_at, Relaxed);
    TICKS_PER_NANO.store(ratio(rate.ticks, rate.nanos), Relaxed);
    NANOS_PER_TICK.store(rate.nanos_per_tick(), Relaxed);
}

/// Returns the narrowest of several readings of both clocks.
fn read_both() -> Reading {
    let reading = || {
        let before = counter::read_ordered();
        let nanos = monotonic();
        let after = counter::read_ordered();
        let width = after.saturating_sub(before).max(1);
        Reading { ticks: before + width / 2, nanos, width }
    };
    let mut best = reading();
    for _ in 0..7 {
        let next = reading();
        if next.width < best.width {
            best = next;
        }
    }
    best
}

/// Returns how long one pause hint lasts: the shortest of 16 windows.
pub(crate) fn pause_ns() -> f64 {
    /// Bits of the figure; 0 while unknown. Relaxed: each thread that measures gets much the same.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    const WINDOWS: usize = 16;
    const PAUSES: u32 = 64;

    let known = KNOWN.load(Relaxed);
    if known != 0 {
        return f64::from_bits(known);
    }
    let window = || {
        let start = now();
        for _ in 0..PAUSES {
            super::spin_loop();
        }
        // Saturating: two processors' counters may differ by a few ticks, and the thread may have
        // moved.
        now().saturating_sub(start)
    };
    window(); // warms the code and the clock
    let shortest = (0..WINDOWS).map(|_| window()).min().unwrap_or(0).max(1);
    let nanos = shortest as f64 * rate(&NANOS_PER_TICK, 0) as f64 / ONE as f64 / f64::from(PAUSES);
    KNOWN.store(nanos.to_bits(), Relaxed);
    nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Deadline, Ticks};
    use core::time::Duration;
    use std::format;
    use std::time::Instant;

    #[test]
    fn the_reason_for_the_monotonic_clock_is_named() {
        for (invariant, clocksource, says) in [
            (None, Some("tsc"), "no processor counter is known here"),
            (Some(false), Some("tsc"), "changes speed"),
            (Some(true), Some("hpet"), "a system call (its source is hpet)"),
            (Some(true), None, "does not say"),
        ] {
            let distrust = distrust(invariant, clocksource.map(String::from));
            assert!(format!("{distrust}").contains(says), "{distrust}");
        }
    }

    #[test]
    fn a_clock_that_takes_a_system_call_is_not_short() {
        // 8 calls each, on processors of 3 GHz: in user space, by system call, from an HPET.
        assert!(is_short(600, 4_000));
        assert!(!is_short(4_400, 4_000));
        assert!(!is_short(40_000, 4_000));
        // Nothing was measured.
        assert!(!is_short(u64::MAX, u64::MAX));
        assert!(!is_short(0, 0));
    }

    #[test]
    fn attempts_that_ran_backwards_or_were_interrupted_do_not_count() {
        let readings = [100, 90, 200, 9_000, 300, 340, 400, 460];
        let at = core::cell::Cell::new(0);
        let read = || readings[at.replace(at.get() + 1)];
        assert_eq!(shortest(read, || ()), 40);
    }

    #[test]
    fn the_counter_is_read_only_where_the_kernel_keeps_time_by_it() {
        let Source::Counter { .. } = source() else { return };
        if let Some(name) = counter::clocksource() {
            let others = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
            assert!(!others.contains(&name.as_str()), "{name}");
        }
    }

    #[test]
    fn scaling_saturates_and_rounds_up_on_request() {
        assert_eq!(scale(10, ONE, 0), 10);
        assert_eq!(scale(3, ONE / 2, 0), 1);
        assert_eq!(scale(3, ONE / 2, ONE - 1), 2);
        assert_eq!(scale(u64::MAX, ONE * 3, 0), u64::MAX);
        assert_eq!(scale(u64::MAX, ONE, 0), u64::MAX);
    }

    /// A counter of 3 ticks a nanosecond that was at 1000 when the clock was at 0.
    fn at(nanos: u64) -> Reading {
        Reading { ticks: 1_000 + 3 * nanos, nanos, width: 60 }
    }

    const KNOWN: u64 = ONE / 3;

    #[test]
    fn a_refinement_waits_for_its_distance_and_ends_after_a_second() {
        let anchor = at(0);
        assert_eq!(refined(KNOWN, anchor, at(10_000)), Refined::NotYet, "30,000 of 30,720 ticks");
        let Refined::To(rate) = refined(KNOWN, anchor, at(20_000)) else { panic!("far enough") };
        assert_eq!((rate.nanos_per_tick(), rate.refine_at()), (KNOWN, 16 * 60_000));
        let last = Rate { nanos: FINAL_NS, ticks: 3 * FINAL_NS };
        assert_eq!(refined(KNOWN, anchor, at(FINAL_NS)), Refined::To(last));
        assert_eq!(last.refine_at(), NEVER);
    }

    #[test]
    fn a_suspend_between_two_readings_does_not_become_a_rate() {
        let anchor = at(0);
        let awake = at(2 * FINAL_NS);
        // An hour in which the counter ran and the clock did not.
        let ran_on = Reading { ticks: awake.ticks + 3 * 3_600 * FINAL_NS, ..awake };
        assert_eq!(refined(KNOWN, anchor, ran_on), Refined::NoMore);
        // Less than the first rate may be wrong by, or barely more: a refinement like any other.
        let barely = Reading { ticks: awake.ticks + awake.ticks / 200, ..awake };
        assert!(matches!(refined(KNOWN, anchor, barely), Refined::To(_)));
        // The counter began anew, and is not or is already past the anchor.
        for ticks in [10, anchor.ticks + FINAL_NS] {
            assert_eq!(refined(KNOWN, anchor, Reading { ticks, ..awake }), Refined::NoMore);
        }
    }

    #[test]
    fn a_counter_that_begins_anew_gives_the_first_rate_a_new_anchor() {
        const UPTIME: u64 = 86_400 * FINAL_NS;
        let mut reads = 0;
        let (anchor, rate) = first_rate(|| {
            reads += 1;
            assert!(reads < 1_000, "waits for a former uptime");
            let before = at(UPTIME + reads * 1_000);
            let anew = Reading { ticks: before.ticks - at(UPTIME).ticks, ..before };
            if reads == 1 { before } else { anew }
        });
        assert_eq!(anchor.ticks, 6_000, "the second reading");
        assert_eq!(rate.nanos_per_tick(), KNOWN);
    }

    #[test]
    fn ticks_agree_with_the_monotonic_clock() {
        let disagreement = || {
            let (ticks, nanos) = (crate::clock::now(), monotonic());
            while monotonic() - nanos < 2_000_000 {
                core::hint::spin_loop();
            }
            let (by_ticks, by_clock) =
                (crate::clock::now().nanos_since(ticks) as f64, (monotonic() - nanos) as f64);
            (by_ticks / by_clock - 1.0).abs()
        };
        // Preemption between the two readings spoils one attempt, not all of them.
        let best = (0..50).map(|_| disagreement()).fold(f64::INFINITY, f64::min);
        assert!(best < 0.01, "differs by a factor of {best}");
    }

    #[test]
    fn a_budget_is_never_empty_and_never_wraps() {
        let now = crate::clock::now();
        assert!(now.plus_nanos(1) > now);
        // A counter may tick less than once a nanosecond.
        assert!(now.plus_nanos(u64::MAX) > now);
        let last = Ticks::from_bits(u64::MAX);
        assert_eq!(Ticks::from_bits(u64::MAX - 1).plus_nanos(u64::MAX), last);
        assert_eq!(Ticks::from_bits(now.to_bits()), now);
    }

    #[test]
    fn a_pause_lasts_between_a_cycle_and_a_millisecond() {
        let pause = pause_ns();
        assert!((0.1..1e6).contains(&pause), "{pause} ns");
        assert_eq!(pause, pause_ns(), "measured once");
    }

    #[test]
    fn deadlines_at_the_ends_of_time() {
        assert_eq!(Deadline::after(Duration::MAX), Deadline::NEVER);
        assert_eq!(Deadline::after(Duration::from_nanos(u64::MAX)), Deadline::NEVER);
        assert!(!Deadline::NEVER.passed());
        assert_eq!(Deadline::NEVER.remaining(), None);
        assert!(Deadline::after(Duration::ZERO).passed());
        assert_eq!(Deadline::after(Duration::ZERO).remaining(), Some(Duration::ZERO));
        let hour = Duration::from_secs(3600);
        let long_ago = Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
        assert!(Deadline::at(long_ago).passed());
        if let Some(before_boot) = Instant::now().checked_sub(hour * 24 * 365 * 20) {
            assert!(Deadline::at(before_boot).passed());
        }
        assert!(!Deadline::at(Instant::now() + hour).passed());
        assert!(Deadline::at(Instant::now() + hour).remaining().unwrap() > hour / 2);
        if let Some(far) = Instant::now().checked_add(hour * 24 * 365 * 1000) {
            assert_eq!(Deadline::at(far), Deadline::NEVER);
        }
        assert!(Deadline::after(hour) < Deadline::NEVER);
    }

    #[test]
    fn a_deadline_at_an_instant_never_passes_early() {
        for _ in 0..1000 {
            let soon = Instant::now() + Duration::from_micros(5);
            let deadline = Deadline::at(soon);
            while !deadline.passed() {
                core::hint::spin_loop();
            }
            assert!(Instant::now() >= soon);
        }
    }
}
