//! Writers that meet readers.
//!
//! They leave the gate before they sleep, for up to 10 ms; the header of the [lock](super) says
//! why, and why no wake-up is lost.

use core::mem;

use lock_api::RawMutex;
use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::{self, Deadline};
use stanchion_machine::park;

use super::{RawRwLock, WANTED, WRITER, is_empty};
use crate::parking::PATIENCE_NS;

/// A writer that has left the gate. It gives up where this is dropped.
struct Wanting<'l, G>(&'l RawRwLock<G>);

impl<G> Drop for Wanting<'_, G> {
    fn drop(&mut self) {
        self.0.give_up(0, false);
    }
}

impl<G: RawMutex> RawRwLock<G> {
    /// Waits until the lock is the caller's to write. `take` takes the gate, unless the deadline
    /// comes first. Returns the gate's guard.
    #[inline]
    pub(super) fn write(
        &self,
        take: impl Fn() -> Option<G::Guard>,
        deadline: Deadline,
    ) -> Option<G::Guard> {
        let gate = take()?;
        if self.claim() {
            return Some(gate);
        }
        self.write_slow(gate, take, deadline)
    }

    /// Waits as [`write`](Self::write) does, for the writer, where there are readers.
    #[cold]
    fn write_slow(
        &self,
        mut gate: G::Guard,
        take: impl Fn() -> Option<G::Guard>,
        deadline: Deadline,
    ) -> Option<G::Guard> {
        let arrived = clock::now();
        loop {
            if self.drain_spinning() {
                return Some(gate);
            }
            // In a model, where no time passes, it has passed by choice.
            let waited = clock::now().nanos_since(arrived);
            if waited >= PATIENCE_NS || stanchion_machine::choice() {
                if self.drain(deadline) {
                    return Some(gate);
                }
                // SAFETY: the gate is held, with this guard.
                unsafe { self.gate.unlock(gate) };
                return None;
            }
            let Some(word) = self.step_back() else { continue };
            // The deadline may come, or the gate's policy panic.
            let wanting = Wanting(self);
            // SAFETY: as above.
            unsafe { self.gate.unlock(gate) };
            let in_time = park::wait(&self.word, word, deadline) != park::Woken::TimedOut;
            gate = in_time.then(&take).flatten()?;
            mem::forget(wanting);
            if self.claim() {
                return Some(gate);
            }
        }
    }

    /// Turns the writer into one that sleeps without the gate. Returns the word on which it sleeps;
    /// `None` if no reader is left.
    fn step_back(&self) -> Option<u32> {
        // Relaxed, also below: nothing was written, and the caller looks again where no reader is
        // left.
        let mut word = self.word.load(Ordering::Relaxed);
        while !is_empty(word) {
            let wanted = word & !WRITER | WANTED;
            match self.word.compare_exchange_weak(
                word,
                wanted,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(wanted),
                Err(now) => word = now,
            }
        }
        None
    }
}
