//! To which of several ready queues a new task goes.
//!
//! | placement | queue | lock | balance |
//! | --- | --- | --- | --- |
//! | [`Own`] | the creator's | in the creator's cache, mostly free | none: idle places search |
//! | [`Random`] | any | somebody else's line each time | even in the mean; the longest of q queues with q tasks has about ln q / ln ln q |
//! | [`TwoChoices`] | the shorter of any two | as above, and two looks | the longest has about ln ln q |
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.5; Azar, Broder, Karlin and Upfal 1994 for the last.

/// Where [`LocalReadyQueue`](super::LocalReadyQueue) puts new tasks: [`Own`], [`Random`] or [`TwoChoices`].
///
/// Sealed: what else there may be wants to be measured beside these.
pub trait Placement: sealed::Sealed + Send + Sync + 'static {
    /// The queue, of so many, for a task from where `own` is.
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
    impl Sealed for super::Own {}
    impl Sealed for super::Random {}
    impl Sealed for super::TwoChoices {}
}

/// A task goes to its creator's queue.
///
/// Nothing moves between processors as long as everybody has work. Where one place creates everything, its queue is a central one for which the
/// others search.
///
/// ```
/// use stanchion_competitive::RawPolicyMutex;
/// use stanchion_threadpool::strategy::{Lifo, LocalReadyQueue, Own, Plan, Strategy};
///
/// let ready = LocalReadyQueue::<RawPolicyMutex, Lifo, Own>::new(&Plan::new(2));
/// assert!(ready.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Own;

/// A task goes to any queue, all equally likely.
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

/// A task goes to the shorter of any two queues.
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

impl Placement for Own {
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

/// A number below `bound`, made of one that is any.
#[inline]
fn below(bound: usize, number: u64) -> usize {
    let product = u128::from(number) * bound as u128;
    // Below `bound`, which is a usize.
    (product >> 64) as usize
}

/// A source of random numbers: SplitMix64, which any start will do for. Source: Steele, Lea and Flood, OOPSLA 2014.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// The length of the longest of `queues` after `tasks` were placed from queue 0, and nothing was taken.
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
        assert_eq!(longest::<Own>(16, 16_000), 16_000);
        assert!((1_001..1_160).contains(&longest::<Random>(16, 16_000)));
        assert!((1_000..1_010).contains(&longest::<TwoChoices>(16, 16_000)));
    }

    #[test]
    fn every_queue_is_chosen_and_none_that_is_not_there() {
        for queues in 1..=20 {
            let mut numbers = Numbers::new(queues as u64);
            let chosen: std::collections::BTreeSet<_> =
                (0..1_000).map(|_| below(queues, numbers.next())).collect();
            assert!(chosen.into_iter().eq(0..queues));
        }
        assert_eq!(below(3, u64::MAX), 2);
    }
}
