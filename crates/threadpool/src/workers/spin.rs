//! The spinning of an idle worker before it sleeps.
//!
//! A worker that sleeps must be woken. So an idle worker looks for work for about as long as
//! a wake-up takes.
//!
//! If the pool may have a worker for each processor, the thread that makes the work may need this
//! processor. So the worker yields between two looks. A short yield costs little: the processor
//! went to a worker of the pool that computed for some microseconds, or to no thread. A long yield
//! costs a lot. Another program, or a long task, has had the processor for its slice. Meanwhile the
//! worker counted as searching, so no other worker was woken for a new task. Then it is better to
//! sleep: the kernel mostly lets a thread that wakes up run sooner than one that has yielded.
//!
//! Whether yields are long depends on the tasks and on other programs, so each worker learns it.
//! After a long yield one search ends after its first look. Each further long yield doubles that
//! number, up to 64. A search without a long yield halves it.

use core::cell::Cell;

use stanchion_machine::{clock, wait};

/// The longest pause between two attempts of an idle worker. Forks are taken within 10 µs because
/// of it (`queues/fork_stack.rs`).
const LONGEST_PAUSE_NS: u64 = 1_000;

/// A yield is long if it takes more: half of the shortest time slice of Linux.
const LONG_YIELD_NS: u64 = 350_000;

/// The most searches that end after their first look.
const MOST_SHORT_SEARCHES: u32 = 64;

/// The yields of a worker so far.
pub(super) struct YieldHistory {
    /// The number of coming searches that end after their first look.
    short_searches: Cell<u32>,
    /// The number of such searches after the next long yield.
    after_long_yield: Cell<u32>,
}

impl YieldHistory {
    /// Creates a history without yields.
    pub(super) fn new() -> Self {
        Self { short_searches: Cell::new(0), after_long_yield: Cell::new(1) }
    }

    /// Returns whether the next search may look more than once, and counts that search.
    fn begin_search(&self) -> bool {
        let left = self.short_searches.get();
        self.short_searches.set(left.saturating_sub(1));
        left == 0
    }

    /// Counts the end of a search that has yielded.
    fn end_search(&self, was_long: bool) {
        let number = self.after_long_yield.get();
        if was_long {
            self.short_searches.set(number);
            self.after_long_yield.set((2 * number).min(MOST_SHORT_SEARCHES));
        } else {
            self.after_long_yield.set((number / 2).max(1));
        }
    }

    /// Repeats `attempt` until it returns a value, or until `patience` nanoseconds have passed.
    /// Calls `yield_now`, if there is one, between two attempts. The time that other threads then
    /// have does not count. But a long yield ends this search after one more attempt, and later
    /// searches after their first (see the head of the file).
    pub(super) fn spin<R>(
        &self,
        mut attempt: impl FnMut() -> Option<R>,
        patience: u64,
        yield_now: Option<fn()>,
    ) -> Option<R> {
        let looks_again = self.begin_search();
        let mut is_first = true;
        // Nanoseconds: of all yields, and of the longest.
        let (away, longest) = (Cell::new(0_u64), Cell::new(0_u64));
        let attempt = || {
            if !core::mem::replace(&mut is_first, false)
                && let Some(yield_now) = yield_now
            {
                let before = clock::now();
                yield_now();
                let took = clock::now().nanos_since(before);
                // The call itself is the worker's own time.
                away.set(away.get().saturating_add(took.saturating_sub(wait::calls(1))));
                longest.set(longest.get().max(took));
            }
            attempt()
        };
        let begin = clock::now();
        let pauses = wait::pauses(1).start..LONGEST_PAUSE_NS;
        let found = wait::retry_for(attempt, pauses, || {
            let spun = clock::now().nanos_since(begin).saturating_sub(away.get());
            looks_again && spun < patience && longest.get() <= LONG_YIELD_NS
        });
        if longest.get() > 0 {
            self.end_search(longest.get() > LONG_YIELD_NS);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of the next searches end after their first look.
    fn short_searches(history: &YieldHistory) -> u32 {
        (0..).find(|_| history.begin_search()).unwrap()
    }

    /// Returns how often a search looks that ends in vain.
    fn looks(history: &YieldHistory, yield_now: fn()) -> u32 {
        let mut looks = 0;
        let look = || {
            looks += 1;
            (looks == 10).then_some(())
        };
        assert_eq!(history.spin(look, u64::MAX, Some(yield_now)), None);
        looks
    }

    #[test]
    fn a_long_yield_ends_this_search_and_later_ones_after_their_first_look() {
        let history = YieldHistory::new();
        let long = || std::thread::sleep(core::time::Duration::from_nanos(2 * LONG_YIELD_NS));
        let expected = [2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 2];
        assert_eq!(expected.map(|_| looks(&history, long)), expected);
    }

    #[test]
    fn long_yields_in_a_row_double_the_short_searches_and_short_ones_halve_them() {
        let history = YieldHistory::new();
        assert_eq!(short_searches(&history), 0);
        let after_long_yields = (0..9).map(|_| {
            history.end_search(true);
            short_searches(&history)
        });
        assert_eq!(after_long_yields.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        history.end_search(false);
        history.end_search(false);
        assert_eq!(short_searches(&history), 0);
        history.end_search(true);
        assert_eq!(short_searches(&history), 16);
        (0..9).for_each(|_| history.end_search(false));
        history.end_search(true);
        assert_eq!(short_searches(&history), 1);
    }
}
