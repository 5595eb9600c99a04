//! The search of a [`Blocking`](super::Blocking) queue by a thread that is about to sleep.
//!
//! A thread that finds a queue empty or full waits for another thread. That thread may run on
//! another processor, or wait for the processor of the searching thread. So the search pauses
//! first, for as long as a few lines take to travel between two processors. Then it yields: a
//! partner that had no processor fills or empties the queue meanwhile, and the two threads
//! switch once for many values.
//!
//! Why not only pauses: a pipeline of 2, 2 and 1 threads on two processors takes 10 times as long,
//! because each thread sleeps for nearly every value. Why not only yields: where each thread has a
//! processor, a value waits for a call to the kernel.
//!
//! The search ends after C, the cost of blocking. A search that ended after as many yields would
//! keep a thread that waits beside busy threads from sleeping, and a thread that yields gets the
//! processor later than one that is woken.

use stanchion_competitive::cost;
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::topology;
use stanchion_machine::wait::{WaitPolicy, delay, pauses, transfers};

/// The first pause lasts for half a transfer of a line, each further one twice as long, and the
/// last one for so many transfers.
const LAST_PAUSE_TRANSFERS: u64 = 4;

/// A search yields so often at least, also when C is over. Below that a yield that has waited for
/// one turn of another thread would end the search.
const YIELDS: u32 = 8;

/// One search.
pub(super) enum Search {
    /// The next pause lasts so many nanoseconds.
    Pausing(u64),
    /// Yields until C has passed since `began`, and `left` more times at least.
    Yielding { began: Ticks, left: u32 },
}

impl Search {
    fn yielding() -> Self {
        Self::Yielding { began: clock::now(), left: YIELDS }
    }
}

impl WaitPolicy for Search {
    fn start() -> Self {
        Self::Pausing(pauses(LAST_PAUSE_TRANSFERS).start)
    }

    fn pause(&mut self) {
        match self {
            // With one processor no other thread makes progress while this one pauses.
            Self::Pausing(_) if topology::usable() == 1 => {
                *self = Self::yielding();
                stanchion_machine::thread::yield_now();
            }
            Self::Pausing(nanos) => {
                let this_time = *nanos;
                *nanos = this_time * 2;
                delay(this_time);
                if *nanos > transfers(LAST_PAUSE_TRANSFERS) {
                    *self = Self::yielding();
                }
            }
            Self::Yielding { left, .. } => {
                *left = left.saturating_sub(1);
                stanchion_machine::thread::yield_now();
            }
        }
    }

    fn leaves(&self) -> bool {
        matches!(self, Self::Yielding { .. })
    }

    fn sleeps(&self) -> bool {
        match self {
            Self::Pausing(_) => false,
            Self::Yielding { began, left } => {
                *left == 0 && clock::now().nanos_since(*began) >= cost::current()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_pauses_then_yields_then_wants_to_sleep() {
        let mut search = Search::start();
        let mut steps = 0;
        while !search.leaves() {
            assert!(!search.sleeps());
            search.pause();
            steps += 1;
        }
        let pauses = if topology::usable() == 1 { 1 } else { 4 };
        assert_eq!(steps, pauses);
        for _ in 0..YIELDS {
            assert!(!search.sleeps());
            search.pause();
        }
        while !search.sleeps() {
            search.pause();
        }
    }
}
