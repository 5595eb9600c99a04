//! Waiting: the one door through which every algorithm of this project waits.
//!
//! A waiter looks at a word, finds nothing, lets time pass, looks again. What "lets time pass"
//! means depends on the machine, so it is said here and nowhere else:
//!
//! | machine | between two looks |
//! | --- | --- |
//! | real | what the [`WaitPolicy`] says: pause, yield the processor, sleep |
//! | loom | prune this branch of the exploration: a look that changed nothing leads nowhere new |
//! | simulated | the same in virtual time; for as long as the policy only pauses, stand still until the word is written |
//!
//! | function | the wait | under loom |
//! | --- | --- | --- |
//! | [`wait_until`] | unbounded, one word | prunes |
//! | [`wait_for_turn`] | unbounded, a word that says how many are ahead | prunes |
//! | [`wait_until_deadline`] | until a [`Deadline`] | first [chooses](crate::choice) whether it will time out |
//! | [`retry_until`] | unbounded, an attempt that changes nothing when it fails | prunes |
//! | [`retry_until_deadline`], [`retry_on`] | the same, until a [`Deadline`] | first chooses whether it will time out |
//! | [`spin_for`] | bounded spinning, before something else is tried | looks once |
//! | [`retry_for`] | attempts further and further apart, for as long as the caller says | attempts once |
//! | [`delay`] | lets time pass, looks at nothing | nothing |
//!
//! Why pruning is only for the unbounded: cutting a branch says that whatever follows happens
//! anyway in another branch, where the look came later. For a wait that never gives up that is so.
//! A bounded spin goes on after its last look, so its branch leads somewhere, and cutting it hides
//! lost wake-ups.
//!
//! # Invariants
//!
//! 1. A predicate or attempt that fails has changed nothing that another thread can see.
//! 2. A policy never panics and never unwinds: a waiter may be linked into a queue while it waits.

use crate::atomic::{Ordering, Word};
use crate::backend::{self, wait::Waiting};
use crate::clock::Deadline;

mod policy;
pub use policy::{Patient, Spin, TURN_NS, WaitPolicy};

/// Waits until the value of `word`, loaded with `order`, satisfies `done`, and returns that value.
///
/// `done` must have no effect when it returns `false`.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering}, sync::Arc, thread, wait::{Patient, WaitPolicy, wait_until}};
///
/// let ready = Arc::new(AtomicU32::new(0));
/// let setter = { let ready = ready.clone(); thread::spawn(move || ready.store(3, Ordering::Release)) };
/// assert_eq!(wait_until(&*ready, Ordering::Acquire, |value| value != 0, &mut <Patient>::start()), 3);
/// setter.join().unwrap();
/// # use stanchion_machine as machine;
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

/// Waits until `ahead` of the value of `word` is 0, telling the policy how many come first.
///
/// For locks that hand out numbers: who is far from his turn can stay away for longer, and who has
/// as many ahead as there are processors knows that one of them is not running.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering}, wait::{Patient, wait_for_turn}};
///
/// let serving = AtomicU32::new(7);
/// wait_for_turn::<_, Patient>(&serving, Ordering::Acquire, |serving| 7_u32.wrapping_sub(serving));
/// # use stanchion_machine as machine;
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

/// A policy and what it is to be told.
struct Behind<P> {
    policy: P,
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

    /// One that is not the next stays away for a while first.
    fn pausing(&self) -> u64 {
        if self.ahead > 1 { 0 } else { self.policy.pausing() }
    }

    fn paused(&mut self, nanos: u64) {
        self.policy.paused(nanos);
    }
}

/// [`wait_until`], but gives up with `None` once `deadline` has passed. Looks at least once.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering}, clock::Deadline, wait::{Patient, WaitPolicy, wait_until_deadline}};
///
/// let never = AtomicU32::new(0);
/// let soon = Deadline::after(core::time::Duration::from_millis(1));
/// assert_eq!(wait_until_deadline(&never, Ordering::Acquire, |value| value != 0, &mut <Patient>::start(), soon), None);
/// # use stanchion_machine as machine;
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

/// Repeats `attempt` until it yields something. A failed attempt must have no effect that another
/// thread can see.
///
/// This is how a waiter spins on a read-modify-write; where a plain look will do, [`wait_until`] is
/// kinder to the others.
///
/// ```
/// use machine::{atomic::{AtomicBool, Ordering}, wait::{Spin, WaitPolicy, retry_until}};
///
/// let locked = AtomicBool::new(false);
/// retry_until(|| (!locked.swap(true, Ordering::Acquire)).then_some(()), &mut Spin::start());
/// assert!(locked.load(Ordering::Relaxed));
/// # use stanchion_machine as machine;
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

/// [`retry_until`], but gives up with `None` once `deadline` has passed. Attempts at least once.
///
/// ```
/// use machine::{clock::Deadline, wait::{Spin, WaitPolicy, retry_until_deadline}};
///
/// let soon = Deadline::after(core::time::Duration::from_millis(1));
/// assert_eq!(retry_until_deadline(|| None::<()>, &mut Spin::start(), soon), None);
/// # use stanchion_machine as machine;
/// ```
#[inline]
pub fn retry_until_deadline<R>(
    attempt: impl FnMut() -> Option<R>,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
) -> Option<R> {
    retry(Waiting::in_attempts(), attempt, policy, deadline)
}

/// [`retry_until_deadline`] for an attempt that can only succeed once `word` has been written since
/// it failed, which a simulated machine makes use of.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering::Relaxed}, clock::Deadline, wait::{Spin, WaitPolicy, retry_on}};
///
/// let word = AtomicU32::new(1);
/// let taken = retry_on(&word, || (word.load(Relaxed) == 1).then_some("one"), &mut Spin::start(), Deadline::NEVER);
/// assert_eq!(taken, Some("one"));
/// # use stanchion_machine as machine;
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

/// [`retry_until_deadline`] for a caller that sleeps by itself: also gives up where `policy` would
/// [put the thread to sleep](WaitPolicy::sleeps). Attempts at least once; under loom exactly once.
///
/// ```
/// use machine::{clock::Deadline, wait::{Patient, WaitPolicy, retry_while_awake}};
///
/// let mut policy = <Patient>::start();
/// assert_eq!(retry_while_awake(|| None::<()>, &mut policy, Deadline::NEVER), None);
/// assert!(policy.sleeps());
/// # use stanchion_machine as machine;
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

/// Looks at `word` for at most about `nanos` nanoseconds; `None` if `done` was never satisfied.
/// Looks at least once.
///
/// Only pauses between looks, never yields: the caller has something better to do when the time is
/// up.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering}, wait::spin_for};
/// assert_eq!(spin_for(&AtomicU32::new(0), Ordering::Acquire, |value| value != 0, 500), None);
/// # use stanchion_machine as machine;
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

/// Repeats `attempt` until it yields something, or until `again` says to stop, which is asked after
/// each attempt that failed. Attempts at least once.
///
/// The pause between two attempts doubles from `pauses.start` up to `pauses.end` nanoseconds: who
/// watches a word takes its line away from the thread that is to write it. Only pauses, never
/// yields: the caller has something better to do when it stops. A failed attempt must have no
/// effect that another thread can see.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering::Relaxed}, wait::retry_for};
/// let word = AtomicU32::new(0);
/// let mut asked = 0;
/// let seen = retry_for(|| (word.load(Relaxed) != 0).then_some(()), 20..200, || { asked += 1; asked < 5 });
/// assert_eq!((seen, asked), (None, 5));
/// # use stanchion_machine as machine;
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

/// Lets about `nanos` nanoseconds pass without looking at anything or giving the processor away.
///
/// ```
/// stanchion_machine::wait::delay(200);
/// ```
#[inline]
pub fn delay(nanos: u64) {
    backend::wait::delay(nanos);
}

/// A budget of pauses. With a clock it is kept in time; without one, in pauses of
/// [`NOMINAL_PAUSE_NS`].
pub(crate) struct Pauses {
    #[cfg(feature = "std")]
    span: crate::clock::Span,
    #[cfg(feature = "std")]
    until_look: u32,
    #[cfg(not(feature = "std"))]
    left: u64,
}

/// What one pause hint is taken to last where there is no clock to measure it: the middle of what
/// processors of the last ten years do (5 ns to 45 ns).
pub const NOMINAL_PAUSE_NS: u64 = 15;

/// Pauses between two readings of the clock.
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

    /// How many nanoseconds of it are left.
    pub(crate) fn left(&self) -> u64 {
        #[cfg(feature = "std")]
        return self.span.left();
        #[cfg(not(feature = "std"))]
        return self.left.saturating_mul(NOMINAL_PAUSE_NS);
    }

    /// Pauses once, or says that the budget is spent.
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
