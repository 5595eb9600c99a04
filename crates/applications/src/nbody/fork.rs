//! The demands of the program on its runtime: to do two things, maybe at the same time, and to have
//! bodies in memory. And three loops made of that.
//!
//! Why a trait and not a pool: the same program is to run over every pool, over threads that are
//! not the kernel's, and on one thread. Fork and join is the least that all of them have.
//!
//! A loop is cut by its length only, never by which threads are idle. So each sum is made in the
//! same order, and is the same to the last bit.

/// A way to do two things at the same time.
///
/// ```
/// use stanchion_applications::nbody::Fork;
///
/// /// Two threads of the system for each fork: dear, and good enough for large halves.
/// struct Threads;
///
/// impl Fork for Threads {
///     fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
///     where
///         A: FnOnce() -> RA + Send,
///         B: FnOnce() -> RB + Send,
///         RA: Send,
///         RB: Send,
///     {
///         std::thread::scope(|scope| {
///             let other = scope.spawn(other);
///             let one = one();
///             (one, other.join().expect("the other half"))
///         })
///     }
/// }
///
/// assert_eq!(Threads.join(|| 1, || "one"), (1, "one"));
/// ```
pub trait Fork: Sync {
    /// Calls both, and returns their results when both have returned. The order and the threads of
    /// the calls are up to the implementor. A panic of either goes on to the caller.
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send;

    /// Calls `work` where forks are cheap, such as on a worker of a pool. Not said otherwise, that
    /// is here.
    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// Returns when the bodies of a block are in memory. A task has to call it before it looks at
    /// them: [`BLOCK`](super::BLOCK) bodies, in the order of the moment. By default they always are
    /// in memory.
    #[inline]
    fn toucher(&self) -> impl FnMut(usize) {
        |_block| ()
    }
}

/// One after the other, on the thread of the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential;

impl Fork for Sequential {
    #[inline]
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        (one(), other())
    }
}

/// Calls `work` for each of `items` with its index, `grain` of them at least at a time.
pub(super) fn each<F, T, W>(fork: &F, items: &mut [T], grain: usize, work: &W)
where
    F: Fork,
    T: Send,
    W: Fn(usize, &mut T) + Sync,
{
    portions(fork, 0, items, grain, &|first, items| {
        (first..).zip(items).for_each(|(index, item)| work(index, item));
    });
}

/// Calls `work` for portions of `items`, of at least `grain` of them if there are so many, with the
/// index of the portion's first, counted from `first`.
pub(super) fn portions<F, T, W>(fork: &F, first: usize, items: &mut [T], grain: usize, work: &W)
where
    F: Fork,
    T: Send,
    W: Fn(usize, &mut [T]) + Sync,
{
    if items.len() < 2 * grain {
        return work(first, items);
    }
    let half = items.len() / 2;
    let (one, other) = items.split_at_mut(half);
    fork.join(
        || portions(fork, first, one, grain, work),
        || portions(fork, first + half, other, grain, work),
    );
}

/// Maps each of `items` to a value, and combines the values two by two, always in the same order;
/// none of none.
pub(super) fn fold<F, T, V, M, C>(
    fork: &F,
    items: &[T],
    grain: usize,
    map: &M,
    both: &C,
) -> Option<V>
where
    F: Fork,
    T: Sync,
    V: Send,
    M: Fn(&T) -> V + Sync,
    C: Fn(V, V) -> V + Sync,
{
    if items.len() < 2 * grain {
        return items.iter().map(map).reduce(both);
    }
    let (one, other) = items.split_at(items.len() / 2);
    let (one, other) =
        fork.join(|| fold(fork, one, grain, map, both), || fold(fork, other, grain, map, both));
    one.into_iter().chain(other).reduce(both)
}

/// The number of items that one thread sorts or merges without a fork.
const RUN: usize = 2_048;

/// Sorts `items`, no two of which may be equal. `spare` has as many elements. Their values
/// afterwards are unspecified.
pub(super) fn sort<F, T>(fork: &F, items: &mut [T], spare: &mut [T])
where
    F: Fork,
    T: Ord + Copy + Send + Sync,
{
    if items.len() <= RUN {
        return items.sort_unstable();
    }
    let half = items.len() / 2;
    {
        let (one, other) = items.split_at_mut(half);
        let (spare_one, spare_other) = spare.split_at_mut(half);
        fork.join(|| sort(fork, one, spare_one), || sort(fork, other, spare_other));
    }
    merge(fork, &items[..half], &items[half..], spare);
    each(fork, items, RUN, &|index, item| *item = spare[index]);
}

/// Merges two sorted slices into one of the length of both.
fn merge<F, T>(fork: &F, one: &[T], other: &[T], into: &mut [T])
where
    F: Fork,
    T: Ord + Copy + Send + Sync,
{
    // The longer is halved, the other where its half would stand.
    let (longer, shorter) = if one.len() < other.len() { (other, one) } else { (one, other) };
    if into.len() > RUN && longer.len() > 1 {
        let half = longer.len() / 2;
        let there = shorter.partition_point(|item| *item < longer[half]);
        let (low, high) = into.split_at_mut(half + there);
        fork.join(
            || merge(fork, &longer[..half], &shorter[..there], low),
            || merge(fork, &longer[half..], &shorter[there..], high),
        );
        return;
    }
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    for slot in into {
        let next = match (one.peek(), other.peek()) {
            (Some(first), Some(second)) if first < second => one.next(),
            (Some(_), None) => one.next(),
            _ => other.next(),
        };
        if let Some(next) = next {
            *slot = *next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_item_is_met_once_with_its_index(length in 0_usize..300, grain in 1_usize..20) {
            let mut items = vec![0; length];
            each(&Sequential, &mut items, grain, &|index, item| *item += index + 1);
            prop_assert_eq!(items, (1..=length).collect::<Vec<_>>());
        }

        #[test]
        fn a_fold_keeps_the_order(text in ".{0,60}", grain in 1_usize..9) {
            let letters: Vec<char> = text.chars().collect();
            let folded = fold(&Sequential, &letters, grain, &|letter| letter.to_string(), &|one, other| one + &other);
            prop_assert_eq!(folded.unwrap_or_default(), text);
        }

        #[test]
        fn a_merge_sorts(numbers in prop::collection::btree_set(any::<u16>(), 0..400), cut: u16) {
            let sorted: Vec<u16> = numbers.into_iter().collect();
            // Every third number up to the cut on one side, the rest on the other.
            let (one, other): (Vec<u16>, Vec<u16>) = sorted.iter().partition(|number| number.is_multiple_of(3) && **number < cut);
            let mut into = vec![0; sorted.len()];
            merge(&Sequential, &one, &other, &mut into);
            prop_assert_eq!(into, sorted);
        }
    }

    #[test]
    fn long_slices_are_sorted() {
        for length in [0, 1, RUN, RUN + 1, 3 * RUN + 5, 20 * RUN] {
            let mut items: Vec<u64> = (0..length as u64).map(crate::mix::mix).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            let mut spare = vec![0; length];
            sort(&Sequential, &mut items, &mut spare);
            assert_eq!(items, expected, "{length}");
        }
    }
}
