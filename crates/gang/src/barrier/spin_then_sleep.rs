//! A wait at one of the barriers that are made for spinning: the member spins on a word, and if
//! that lasts long it sleeps until the word is written.
//!
//! Why members sleep at all: a member that a fast barrier keeps waiting for long waits for a member
//! that blocks, or has no processor. More looks would only cost processor time, and wake the thread
//! again and again. The [`WaitPolicy`] says how long "long" is ([`WaitPolicy::sleeps`]).
//!
//! # A bit that says that a member sleeps
//!
//! A crossing must not pay for sleepers that it does not have. So a sleeper sets the bit [`ASLEEP`]
//! in the word that it waits for, and sleeps on that word. Each thread that writes the word does so
//! by a read-modify-write. If the value that it replaced has the bit, the thread wakes the
//! sleepers.
//!
//! ```text
//! sleeper                                writer
//! -------                                ------
//! (1) value -> value | ASLEEP            (a) value -> other; was ASLEEP set?
//! (2) sleep while that is so             (b)   wake all
//! ```
//!
//! No wake-up is lost. If (a) comes before (1), then (1) fails. If it comes after (1), it finds the
//! bit. Then (2) does not sleep because the word has changed, or sleeps before (b).

use core::cell::Cell;

use stanchion_machine::atomic::{AtomicU32, Ordering, Word};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park::{self, Woken};
use stanchion_machine::wait::{WaitPolicy, wait_until_deadline};

use super::interface::REASON_BITS;

/// The bit of a word for which a member sleeps, above the reason.
pub(super) const ASLEEP: u32 = 1 << REASON_BITS;

/// Spins on `word`, with Acquire, until its value is `over`. If the policy would sleep before that,
/// calls `sleep`. Returns the value, or `None` if `deadline` has passed.
#[inline]
pub(super) fn spin_then_sleep<W: Word>(
    word: &W,
    over: impl Fn(W::Value) -> bool,
    policy: &mut impl WaitPolicy,
    deadline: Deadline,
    sleep: impl FnOnce() -> Option<W::Value>,
) -> Option<W::Value>
where
    W::Value: Copy,
{
    // In a model, where no time passes, the policy's patience ends by choice.
    if stanchion_machine::choice() {
        return sleep();
    }
    let tired = Cell::new(false);
    let mut policy = SpinOnly { policy, tired: &tired };
    // Acquire: pairs with the writes of the caller's word.
    let seen = wait_until_deadline(
        word,
        Ordering::Acquire,
        |value| over(value) || tired.get(),
        &mut policy,
        deadline,
    )?;
    if over(seen) { Some(seen) } else { sleep() }
}

/// A policy that ends the spinning where it would sleep.
struct SpinOnly<'a, P> {
    /// The caller's policy.
    policy: &'a mut P,
    /// Becomes true when the caller's policy would sleep.
    tired: &'a Cell<bool>,
}

impl<P: WaitPolicy> WaitPolicy for SpinOnly<'_, P> {
    fn start() -> Self {
        unreachable!("made by `spin_then_sleep`")
    }

    #[inline]
    fn pause(&mut self) {
        if self.policy.sleeps() {
            self.tired.set(true);
        } else {
            self.policy.pause();
        }
    }

    #[inline]
    fn leaves(&self) -> bool {
        self.policy.leaves()
    }

    fn pausing(&self) -> u64 {
        if self.policy.sleeps() { 0 } else { self.policy.pausing() }
    }

    fn paused(&mut self, nanos: u64) {
        self.policy.paused(nanos);
    }
}

/// Sleeps while `word` has `value`, and returns its next value; `None` if there is none until
/// `deadline`.
#[cold]
pub(super) fn sleep_while(word: &AtomicU32, value: u32, deadline: Deadline) -> Option<u32> {
    let asleep = value | ASLEEP;
    loop {
        // Relaxed: the bit publishes nothing. Acquire: as the last look of a waiter.
        match word.compare_exchange(value, asleep, Ordering::Relaxed, Ordering::Acquire) {
            Err(now) if now != asleep => return Some(now),
            // The bit is this thread's, or was set by another member that waits for the same word.
            Ok(_) | Err(_) => {}
        }
        if park::wait(word, asleep, deadline) == Woken::TimedOut {
            return None;
        }
    }
}

/// Wakes the members that sleep on `word`, after it was written and had `before`.
#[inline]
pub(super) fn wake_if_asleep(word: &AtomicU32, before: u32) {
    if before & ASLEEP != 0 {
        wake(word);
    }
}

#[cold]
fn wake(word: &AtomicU32) {
    park::wake_all(word);
}
