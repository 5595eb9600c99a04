//! Waiting: the only place through which every algorithm of this project waits.
//!
//! A waiter looks at a word, finds nothing, lets time pass, and looks again. How it lets time pass
//! depends on the machine, so only this module decides it. Between two looks, a waiter does this:
//!
//! - On the real machine it does what the [`WaitPolicy`] says: it pauses, yields the processor, or
//!   sleeps.
//! - Under loom it prunes this branch of the exploration, because a look that changed nothing leads
//!   to no new state.
//! - On the simulated machine it does what the policy says, in virtual time. For as long as the
//!   policy only pauses, the thread stands still until the word is written.
//!
//! The functions, and what each does under loom:
//!
//! - [`wait_until`] waits for one word without bound. It prunes.
//! - [`wait_for_turn`] waits without bound for a word that says how many waiters are ahead. It
//!   prunes.
//! - [`wait_until_deadline`] waits until a [`Deadline`]. It first [chooses](crate::choice) whether
//!   it will time out.
//! - [`retry_until`] repeats an attempt without bound. An attempt that fails changes nothing. It
//!   prunes.
//! - [`retry_until_deadline`] and [`retry_on`] do the same until a [`Deadline`]. They first choose
//!   whether they will time out.
//! - [`spin_for`] spins for a bounded time, before the caller tries something else. It looks once.
//! - [`retry_for`] makes attempts further and further apart, for as long as the caller says. It
//!   makes one attempt.
//! - [`delay`] lets time pass and looks at nothing. It does nothing.
//!
//! Why only unbounded waits prune: cutting a branch claims that whatever follows also happens in
//! another branch, in which the look came later. That is true of a wait that never gives up. A
//! bounded spin continues after its last look, so its branch leads to new states, and cutting it
//! would hide lost wake-ups.
//!
//! # Invariants
//!
//! 1. A predicate or attempt that fails has changed nothing that another thread can see.
//! 2. A policy never panics and never unwinds: a waiter may be linked into a queue while it waits.

use crate::atomic::{Ordering, Word};
use crate::backend::{self, wait::Waiting};
use crate::clock::Deadline;

mod policy;
mod units;
pub use policy::{Patient, Spin, WaitPolicy};
#[cfg(feature = "std")]
pub use units::yield_to_another;
pub(crate) use units::{NOMINAL_CALL_NS, NOMINAL_TRANSFER_NS};
pub use units::{as_measured, calls, pauses, rounds, transfers, turns};

/// Waits until the value of `word`, loaded with `order`, satisfies `done`, and returns that value.
///
/// `done` must have no effect when it returns `false`.
///
/// ```
/// use stanchion_machine::atomic::{AtomicU32, Ordering};
/// use stanchion_machine::{sync::Arc, thread, wait::{Patient, WaitPolicy, wait_until}};
///
/// let ready = Arc::new(AtomicU32::new(0));
/// let setter = {
///     let ready = ready.clone();
///     thread::spawn(move || ready.store(3, Ordering::Release))
/// };
/// let mut policy = <Patient>::start();
/// assert_eq!(wait_until(&*ready, Ordering::Acquire, |value| value != 0, &mut policy), 3);
/// setter.join().unwrap();
/// ```
#[inline]
#[cfg_attr(stanchion_loom, track_caller)]
pub fn wait_until<W: Word>(
    word: &W,
    order: Ordering,
    mut done: impl FnMut(W::Value) -> bool,
    policy: &mut impl WaitPolicy,
) -> W::Value {
    let mut waiting = Waiting::on(word);
    loop {
        let value = word.look(order);
        if done(value) {
            return value;
        }
        waiting.between_looks(policy);
    }
}

/// Waits until `ahead` of the value of `word` is 0. Tells the policy how many waiters come first.
///
/// For locks that hand out numbers. A waiter that is far from its turn can wait longer between
/// looks. A waiter with as many ahead of it as there are processors knows that one of them is not
/// running.
///
/// ```
/// use stanchion_machine::{atomic::{AtomicU32, Ordering}, wait::{Patient, wait_for_turn}};
///
/// let serving = AtomicU32::new(7);
/// wait_for_turn::<_, Patient>(&serving, Ordering::Acquire, |serving| 7_u32.wrapping_sub(serving));
/// ```
#[inline]
#[cfg_attr(stanchion_loom, track_caller)]
pub fn wait_for_turn<A: Word, P: WaitPolicy>(
    word: &A,
    order: Ordering,
    mut ahead: impl FnMut(A::Value) -> u32,
) {
    let mut waiting = Waiting::on(word);
    let mut policy = Behind { policy: P::start(), ahead: 0 };
    loop {
        policy.ahead = ahead(word.look(order));
        if policy.ahead == 0 {
            return;
        }
        waiting.between_looks(&mut policy);
    }
}

/// A policy for a waiter that knows how many waiters are ahead of it.
struct Behind<P> {
    /// The policy that passes the time.
    policy: P,
    /// The number of waiters ahead at the last look. The waiter writes it.
    ahead: u32,
}

impl<P: WaitPolicy> WaitPolicy for Behind<P> {
    fn start() -> Self {
        Self { policy: P::start(), ahead: 0 }
    }

    #[inline]
    fn pause(&mut self) {
        self.policy.pause_behind(self.ahead);
    }

    #[inline]
    fn leaves(&self) -> bool {
        self.policy.leaves()
    }

    #[inline]
    fn sleeps(&self) -> bool {
        self.policy.sleeps()
    }

    /// Returns 0 unless this waiter is the next: otherwise it first stays away for a while.
    fn pausing(&self) -> u64 {
        if self.ahead > 1 { 0 } else { self.policy.pausing() }
    }

    fn paused(&mut self, nanos: u64) {
        self.policy.paused(nanos);
    }
}

/// Waits as [`wait_until`] does, but gives up with `None` once `deadline` has passed. Looks at
/// least once.
///
/// ```
/// use stanchion_machine::atomic::{AtomicU32, Ordering};
/// use stanchion_machine::{clock::Deadline, wait::{Patient, WaitPolicy, wait_until_deadline}};
///
/// let never = AtomicU32::new(0);
/// let soon = Deadline::after(core::time::Duration::from_millis(1));
/// let mut policy = <Patient>::start();
/// let (order, done) = (Ordering::Acquire, |value: u32| value != 0);
/// assert_eq!(wait_until_deadline(&never, order, done, &mut policy, soon), None);
/// ```
#[inline]
#[cfg_attr(stanchion_loom, track_caller)]
pub fn wait_until_deadline<W: Word>(
    word: &W,
    order: Ordering,
    mut done: impl FnMut(W::Value) -> bool,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
) -> Option<W::Value> {
    let mut waiting = Waiting::on_until(word, deadline);
    let mut timeout = backend::wait::Timeout::new(deadline);
    loop {
        let value = word.look(order);
        if done(value) {
            return Some(value);
        }
        if timeout.is_over() {
            return None;
        }
        waiting.between_looks(policy);
    }
}

/// Repeats `attempt` until it returns a value. A failed attempt must have no effect that another
/// thread can see.
///
/// A waiter uses this to spin on a read-modify-write. Where a plain look is enough, [`wait_until`]
/// disturbs other threads less.
///
/// ```
/// use stanchion_machine::{atomic::{AtomicBool, Ordering}, wait::{Spin, WaitPolicy, retry_until}};
///
/// let locked = AtomicBool::new(false);
/// retry_until(|| (!locked.swap(true, Ordering::Acquire)).then_some(()), &mut Spin::start());
/// assert!(locked.load(Ordering::Relaxed));
/// ```
#[inline]
pub fn retry_until<R>(mut attempt: impl FnMut() -> Option<R>, policy: &mut impl WaitPolicy) -> R {
    let mut waiting = Waiting::in_attempts();
    loop {
        if let Some(outcome) = attempt() {
            return outcome;
        }
        waiting.between_looks(policy);
    }
}

/// Repeats `attempt` as [`retry_until`] does, but gives up with `None` once `deadline` has passed.
/// Attempts at least once.
///
/// ```
/// use stanchion_machine::{clock::Deadline, wait::{Spin, WaitPolicy, retry_until_deadline}};
///
/// let soon = Deadline::after(core::time::Duration::from_millis(1));
/// assert_eq!(retry_until_deadline(|| None::<()>, &mut Spin::start(), soon), None);
/// ```
#[inline]
pub fn retry_until_deadline<R>(
    attempt: impl FnMut() -> Option<R>,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
) -> Option<R> {
    retry(Waiting::in_attempts(), attempt, policy, deadline)
}

/// Repeats `attempt` as [`retry_until_deadline`] does, for an attempt that, once it has failed, can
/// only succeed after `word` has been written. A simulated machine uses that knowledge.
///
/// ```
/// use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed};
/// use stanchion_machine::{clock::Deadline, wait::{Spin, WaitPolicy, retry_on}};
///
/// let word = AtomicU32::new(1);
/// let attempt = || (word.load(Relaxed) == 1).then_some("one");
/// let taken = retry_on(&word, attempt, &mut Spin::start(), Deadline::NEVER);
/// assert_eq!(taken, Some("one"));
/// ```
#[inline]
#[cfg_attr(stanchion_loom, track_caller)]
pub fn retry_on<W: Word, R>(
    word: &W,
    attempt: impl FnMut() -> Option<R>,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
) -> Option<R> {
    retry(Waiting::on_until(word, deadline), attempt, policy, deadline)
}

#[inline]
fn retry<R>(
    mut waiting: Waiting,
    mut attempt: impl FnMut() -> Option<R>,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
) -> Option<R> {
    let mut timeout = backend::wait::Timeout::new(deadline);
    loop {
        if let Some(outcome) = attempt() {
            return Some(outcome);
        }
        if timeout.is_over() {
            return None;
        }
        waiting.between_looks(policy);
    }
}

/// Repeats `attempt` as [`retry_until_deadline`] does, for a caller that sleeps by itself. It also
/// gives up where `policy` would [put the thread to sleep](WaitPolicy::sleeps). Attempts at least
/// once; under loom exactly once.
///
/// ```
/// use stanchion_machine::{clock::Deadline, wait::{Patient, WaitPolicy, retry_while_awake}};
///
/// let mut policy = <Patient>::start();
/// assert_eq!(retry_while_awake(|| None::<()>, &mut policy, Deadline::NEVER), None);
/// assert!(policy.sleeps());
/// ```
#[inline]
pub fn retry_while_awake<R>(
    mut attempt: impl FnMut() -> Option<R>,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
) -> Option<R> {
    loop {
        if let Some(outcome) = attempt() {
            return Some(outcome);
        }
        if !backend::wait::SPINS || policy.sleeps() || deadline.passed() {
            return None;
        }
        policy.pause();
    }
}

/// Looks at `word` for at most about `nanos` nanoseconds. Returns `None` if `done` was never
/// satisfied. Looks at least once.
///
/// It only pauses between looks and never yields: the caller tries something else when the time is
/// up.
///
/// ```
/// use stanchion_machine::{atomic::{AtomicU32, Ordering}, wait::spin_for};
/// assert_eq!(spin_for(&AtomicU32::new(0), Ordering::Acquire, |value| value != 0, 500), None);
/// ```
#[inline]
#[cfg_attr(stanchion_loom, track_caller)]
pub fn spin_for<W: Word>(
    word: &W,
    order: Ordering,
    mut done: impl FnMut(W::Value) -> bool,
    nanos: u64,
) -> Option<W::Value> {
    let mut waiting = Waiting::on(word);
    let mut budget = Pauses::within(nanos);
    loop {
        let value = word.look(order);
        if done(value) {
            return Some(value);
        }
        if !backend::wait::SPINS || !waiting.within(&mut budget) {
            return None;
        }
    }
}

/// Repeats `attempt` until it returns a value, or until `again` returns false. `again` is called
/// after each failed attempt. Attempts at least once.
///
/// The pause between two attempts doubles from `pauses.start` up to `pauses.end` nanoseconds,
/// because each look at a word takes its cache line away from the thread that is about to write it.
/// It only pauses and never yields: the caller tries something else when it stops. A failed attempt
/// must have no effect that another thread can see.
///
/// ```
/// use stanchion_machine::{atomic::{AtomicU32, Ordering::Relaxed}, wait::retry_for};
/// let word = AtomicU32::new(0);
/// let mut asked = 0;
/// let attempt = || (word.load(Relaxed) != 0).then_some(());
/// let seen = retry_for(attempt, 20..200, || {
///     asked += 1;
///     asked < 5
/// });
/// assert_eq!((seen, asked), (None, 5));
/// ```
#[inline]
pub fn retry_for<R>(
    mut attempt: impl FnMut() -> Option<R>,
    pauses: core::ops::Range<u64>,
    mut again: impl FnMut() -> bool,
) -> Option<R> {
    let mut pause = pauses.start.min(pauses.end);
    loop {
        if let Some(outcome) = attempt() {
            return Some(outcome);
        }
        if !again() || !backend::wait::SPINS {
            return None;
        }
        delay(pause);
        pause = pause.saturating_mul(2).min(pauses.end);
    }
}

/// True if a bounded wait looks more than once. False under loom, where no time passes.
pub const SPINS: bool = backend::wait::SPINS;

/// The looks of [`retry_closely`] before its pause doubles.
const LOOKS_A_DOUBLING: u32 = 16;

/// The most pause hints between two looks of [`retry_closely`].
const MOST_PAUSES: u32 = 32;

/// The pause hints of [`retry_closely`] before it asks whether to go on.
const PAUSES_A_QUESTION: u32 = 8;

/// Repeats `attempt` until it returns a value, or until `again` returns false, as [`retry_for`]
/// does, but looks as often as it can: after one pause hint at first, and after twice as many from
/// every sixteenth look on, at most 32. So it notices a change within about a sixteenth of the time
/// that it has waited, until a pause is as long as it gets. `again` is asked after each 8 pause
/// hints, or after each pause if that is longer.
///
/// It is for a word that no thread writes before it becomes what `attempt` waits for. Looks at such
/// a word cost the other threads nothing.
///
/// ```
/// use stanchion_machine::{atomic::{AtomicU32, Ordering::Relaxed}, wait::retry_closely};
/// let word = AtomicU32::new(0);
/// let mut asked = 0;
/// let attempt = || (word.load(Relaxed) != 0).then_some(());
/// let seen = retry_closely(attempt, || {
///     asked += 1;
///     asked < 20
/// });
/// assert_eq!((seen, asked), (None, 20));
/// ```
#[inline]
pub fn retry_closely<R>(
    mut attempt: impl FnMut() -> Option<R>,
    mut again: impl FnMut() -> bool,
) -> Option<R> {
    let (mut pauses, mut looks, mut unasked) = (1, 0, 0);
    loop {
        if let Some(outcome) = attempt() {
            return Some(outcome);
        }
        if !SPINS {
            return None;
        }
        for _ in 0..pauses {
            backend::spin_loop();
        }
        unasked += pauses;
        if unasked >= PAUSES_A_QUESTION {
            if !again() {
                return None;
            }
            unasked = 0;
        }
        looks += 1;
        if looks == LOOKS_A_DOUBLING {
            (pauses, looks) = ((2 * pauses).min(MOST_PAUSES), 0);
        }
    }
}

/// Lets about `nanos` nanoseconds pass without looking at anything or giving the processor away.
///
/// ```
/// stanchion_machine::wait::delay(200);
/// ```
#[inline]
pub fn delay(nanos: u64) {
    backend::wait::delay(nanos);
}

/// A budget of pauses. With a clock it is measured in time; without one, in pauses of
/// [`NOMINAL_PAUSE_NS`].
pub(crate) struct Pauses {
    /// The time in which it may pause.
    #[cfg(feature = "std")]
    span: crate::clock::Span,
    /// Pauses left until the clock is read again. The waiter writes it.
    #[cfg(feature = "std")]
    until_look: u32,
    /// Pauses left. The waiter writes it.
    #[cfg(not(feature = "std"))]
    left: u64,
}

/// The assumed length of one pause hint where no clock can measure it. Processors of the last ten
/// years take 5 ns to 45 ns, and this is in the middle.
pub const NOMINAL_PAUSE_NS: u64 = 15;

/// The number of pauses between two readings of the clock.
#[cfg(feature = "std")]
const PAUSES_PER_LOOK: u32 = backend::wait::PAUSES_PER_LOOK;

impl Pauses {
    #[inline]
    pub(crate) fn within(nanos: u64) -> Self {
        #[cfg(feature = "std")]
        return Self { span: crate::clock::Span::from_now(nanos), until_look: PAUSES_PER_LOOK };
        #[cfg(not(feature = "std"))]
        return Self { left: nanos.div_ceil(NOMINAL_PAUSE_NS) };
    }

    /// Returns how many nanoseconds of it are left.
    pub(crate) fn left(&self) -> u64 {
        #[cfg(feature = "std")]
        return self.span.left();
        #[cfg(not(feature = "std"))]
        return self.left.saturating_mul(NOMINAL_PAUSE_NS);
    }

    /// Pauses once, or returns false if the budget is spent.
    #[inline]
    pub(crate) fn pause(&mut self) -> bool {
        #[cfg(feature = "std")]
        {
            self.until_look -= 1;
            if self.until_look == 0 {
                if self.span.is_over() {
                    self.until_look = 1;
                    return false;
                }
                self.until_look = PAUSES_PER_LOOK;
            }
        }
        #[cfg(not(feature = "std"))]
        {
            let Some(left) = self.left.checked_sub(1) else { return false };
            self.left = left;
        }
        backend::spin_loop();
        true
    }
}

#[cfg(all(test, not(any(stanchion_loom, stanchion_simulated))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicU32;

    #[test]
    fn a_spent_budget_stays_spent() {
        let mut budget = Pauses::within(0);
        while budget.pause() {}
        assert!(!budget.pause());
        assert!(!budget.pause());
    }

    #[test]
    fn spin_for_returns_what_it_saw() {
        let word = AtomicU32::new(9);
        assert_eq!(spin_for(&word, Ordering::Relaxed, |value| value == 9, 0), Some(9));
    }

    #[test]
    fn a_deadline_in_the_past_still_looks_once() {
        let word = AtomicU32::new(1);
        let past = Deadline::after(core::time::Duration::ZERO);
        let seen =
            wait_until_deadline(&word, Ordering::Relaxed, |v| v == 1, &mut Spin::start(), past);
        assert_eq!(seen, Some(1));
    }
}
