//! The end of a phase: all threads meet, the last one to arrive does its part alone, then all go
//! on.
//!
//! Why not a ready-made barrier: the paper's program does its bookkeeping *at* the barrier. The
//! threads' findings of the phase are gathered under a lock while they arrive. The thread that
//! arrives last gives away an object before the others go on. So the counter lives under a lock of
//! the kind that is being studied, and only the waiting is done on a word of its own.
//!
//! ```text
//! word `phase`     moved by                                    meaning
//! n                                                            phase n is going on
//! n -> n + 1       the last to arrive, once                    phase n is over
//! any -> BROKEN    any thread, any number of times, for good   a party will never arrive
//! ```
//!
//! # Invariants
//!
//! 1. Each party arrives once per phase, so no party can be a whole phase ahead of one that has not
//!    yet left. So the word read before arriving is the number of the running phase or `BROKEN`.
//! 2. Between the arrival of the last party and the change of the word, all other parties wait: the
//!    last one is alone.
//! 3. `BROKEN` is final: the only other move is a compare-exchange from a whole phase.
//!
//! Source: A. Karlin, K. Li, M. Manasse, S. Owicki, *Empirical studies of competitive spinning for
//! a shared-memory multiprocessor*, 1991, section 3, "Regsim".

use crate::waits::Waits;
use core::fmt;
use lock_api::{Mutex, RawMutex};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};

/// The word's value once a party will never arrive. Phase numbers wrap below it.
const BROKEN: u32 = 1 << 31;

/// Another party is gone: there will be no next phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// The records of a party of a [`Barrier`] of how long it waited.
pub trait MeetingWaits {
    /// Waits for the lock under which the parties gather.
    fn gathering(&mut self) -> &mut Waits;
    /// Waits for the others; no lock.
    fn barrier(&mut self) -> &mut Waits;
}

/// A barrier at which threads meet. `S` is the data that they gather.
pub struct Barrier<L, S> {
    /// The data and the arrivals, under the lock under study. Written by parties that arrive.
    gathering: Mutex<L, Gathering<S>>,
    /// The word of the phase. Moved by the last to arrive, and by a party that gives up.
    phase: AtomicU32,
    /// The number of parties.
    parties: usize,
}

struct Gathering<S> {
    /// The number of parties that have arrived in this phase.
    arrived: usize,
    /// The number of the party that arrived first in this phase.
    first: usize,
    /// The data that the parties gather.
    shared: S,
}

impl<L, S> fmt::Debug for Barrier<L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("parties", &self.parties).finish_non_exhaustive()
    }
}

impl<L: RawMutex, S> Barrier<L, S> {
    /// Returns a barrier for `parties` threads that gather `shared`.
    pub fn new(parties: usize, shared: S) -> Self {
        Self::with_lock(L::INIT, parties, shared)
    }

    /// The same, gathering under `lock`.
    pub fn with_lock(lock: L, parties: usize, shared: S) -> Self {
        let gathering = Mutex::from_raw(lock, Gathering { arrived: 0, first: 0, shared });
        Self { gathering, phase: AtomicU32::new(0), parties }
    }

    /// Arrives as party `party`: adds its findings with `add`, then waits for the other parties.
    /// The last to arrive does not wait: it runs `last(first, ..)`, alone, with the number of the
    /// party that arrived first.
    ///
    /// Everything that a party did before is visible to all after the meeting, and so is everything
    /// that `last` does.
    ///
    /// # Errors
    ///
    /// [`Broken`] if a party [is gone](Self::give_up).
    pub fn meet<W: MeetingWaits>(
        &self,
        party: usize,
        waits: &mut W,
        add: impl FnOnce(&mut S),
        last: impl FnOnce(usize, &mut W),
    ) -> Result<(), Broken> {
        // Relaxed: by invariant 1 the value is the one this thread left the last meeting with, or
        // BROKEN, and BROKEN carries no data.
        let phase = self.phase.load(Ordering::Relaxed);
        if phase == BROKEN {
            return Err(Broken);
        }
        let (arrived, first) = {
            let mut gathering = waits.gathering().lock(&self.gathering);
            if gathering.arrived == 0 {
                gathering.first = party;
            }
            gathering.arrived += 1;
            add(&mut gathering.shared);
            (gathering.arrived, gathering.first)
        };
        if arrived == self.parties {
            last(first, waits);
            waits.gathering().lock(&self.gathering).arrived = 0;
            let next = (phase + 1) % BROKEN;
            // Release: pairs with the Acquire in the wait below and carries what `last` did. What
            // the parties did before they arrived comes by the gathering lock, through this thread.
            // Relaxed on failure: BROKEN carries no data.
            let moved =
                self.phase.compare_exchange(phase, next, Ordering::Release, Ordering::Relaxed);
            return moved.map(drop).map_err(|_| Broken);
        }
        let began = clock::now();
        // Acquire: pairs with the Release of the last party above.
        let seen =
            wait_until(&self.phase, Ordering::Acquire, |now| now != phase, &mut <Patient>::start());
        waits.barrier().waited(clock::now().nanos_since(began));
        if seen == BROKEN { Err(Broken) } else { Ok(()) }
    }

    /// Looks at the gathered data, or changes it.
    pub fn with<R>(&self, waits: &mut impl MeetingWaits, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut waits.gathering().lock(&self.gathering).shared)
    }

    /// Breaks the barrier, because a party will never arrive. All parties that wait or come later
    /// get an error instead of waiting for ever.
    pub fn give_up(&self) {
        // Relaxed: the word says only that nothing more is to be had.
        self.phase.store(BROKEN, Ordering::Relaxed);
    }
}
