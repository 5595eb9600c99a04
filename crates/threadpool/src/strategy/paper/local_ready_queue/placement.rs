//! The placement of a new task: which of several ready queues it goes to.
//!
//! | placement | queue | lock | balance |
//! | --- | --- | --- | --- |
//! | [`OwnQueue`] | the creator's | in the creator's cache, mostly free | none |
//! | [`Random`] | any | another worker's line each time | even in the mean |
//! | [`TwoChoices`] | the shorter of any two | as above, and two looks | nearly even |
//!
//! With [`OwnQueue`], idle workers search. With [`Random`], the longest of q queues with q tasks
//! has about ln q / ln ln q tasks. With [`TwoChoices`] it has about ln ln q.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.5, and Azar, Broder, Karlin and Upfal 1994
//! for the last.

use crate::strategy::paper::numbers::below;

/// A choice of the queue into which [`LocalReadyQueue`](super::LocalReadyQueue) puts a new task:
/// [`OwnQueue`], [`Random`] or [`TwoChoices`].
///
/// Sealed: another one should be measured beside these.
pub trait Placement: sealed::Sealed + Send + Sync + 'static {
    /// Chooses one of so many queues for a task from the worker with the queue `own`.
    #[doc(hidden)]
    fn choose(
        queues: usize,
        own: usize,
        random: impl FnMut() -> u64,
        length: impl Fn(usize) -> usize,
    ) -> usize;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OwnQueue {}
    impl Sealed for super::Random {}
    impl Sealed for super::TwoChoices {}
}

/// A placement in the creator's queue.
///
/// Nothing moves between processors as long as all workers have work. Where one worker creates all
/// tasks, its queue is a central one for which the others search.
///
/// ```
/// use stanchion_competitive::RawPolicyMutex;
/// use stanchion_threadpool::strategy::{Lifo, LocalReadyQueue, OwnQueue, Plan, Strategy};
///
/// let ready = LocalReadyQueue::<RawPolicyMutex, Lifo, OwnQueue>::new(&Plan::new(2));
/// assert!(ready.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OwnQueue;

/// A placement in any queue, all equally likely.
///
/// ```
/// use stanchion_spin::TestAndSet;
/// use stanchion_threadpool::strategy::{Fifo, LocalReadyQueue, Plan, Random, Strategy};
///
/// // As the paper measured it.
/// let ready = LocalReadyQueue::<TestAndSet, Fifo, Random>::new(&Plan::new(2));
/// assert!(ready.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Random;

/// A placement in the shorter of any two queues.
///
/// ```
/// use stanchion_spin::TestAndSet;
/// use stanchion_threadpool::strategy::{Fifo, LocalReadyQueue, Plan, Strategy, TwoChoices};
///
/// let ready = LocalReadyQueue::<TestAndSet, Fifo, TwoChoices>::new(&Plan::new(2));
/// assert!(ready.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TwoChoices;

impl Placement for OwnQueue {
    #[inline]
    fn choose(_: usize, own: usize, _: impl FnMut() -> u64, _: impl Fn(usize) -> usize) -> usize {
        own
    }
}

impl Placement for Random {
    #[inline]
    fn choose(
        queues: usize,
        _: usize,
        mut random: impl FnMut() -> u64,
        _: impl Fn(usize) -> usize,
    ) -> usize {
        below(queues, random())
    }
}

impl Placement for TwoChoices {
    #[inline]
    fn choose(
        queues: usize,
        _: usize,
        mut random: impl FnMut() -> u64,
        length: impl Fn(usize) -> usize,
    ) -> usize {
        let [first, second] = [random(), random()].map(|number| below(queues, number));
        if length(second) < length(first) { second } else { first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::paper::numbers::Numbers;
    use std::cell::RefCell;

    /// Returns the length of the longest of `queues` after `tasks` were placed from queue 0, and
    /// nothing was taken.
    fn longest<P: Placement>(queues: usize, tasks: usize) -> usize {
        let lengths = RefCell::new(vec![0_usize; queues]);
        let mut numbers = Numbers::new(1);
        for _ in 0..tasks {
            let chosen = P::choose(queues, 0, || numbers.next(), |queue| lengths.borrow()[queue]);
            lengths.borrow_mut()[chosen] += 1;
        }
        lengths.into_inner().into_iter().max().unwrap_or_default()
    }

    #[test]
    fn two_choices_balance_better_than_one_and_that_better_than_none() {
        // Means: 1000. A binomial's deviation is about 31: five of them on each side.
        assert_eq!(longest::<OwnQueue>(16, 16_000), 16_000);
        assert!((1_001..1_160).contains(&longest::<Random>(16, 16_000)));
        assert!((1_000..1_010).contains(&longest::<TwoChoices>(16, 16_000)));
    }
}
