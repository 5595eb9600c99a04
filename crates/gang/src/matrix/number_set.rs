//! A set of small numbers: the processors of a gang, the slots of a list.

use core::fmt;

const WORDS: usize = 4;

/// A set of numbers below [`NumberSet::BOUND`], one bit for each.
///
/// ```
/// use stanchion_gang::matrix::NumberSet;
///
/// let set = NumberSet::below(4).without(NumberSet::below(2));
/// assert_eq!(set.iter().collect::<Vec<_>>(), [2, 3]);
/// assert_eq!(set.nth(1), Some(3)); // the processor of member 1 of a gang on these
/// assert_eq!(set.rank(3), Some(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NumberSet([u64; WORDS]);

impl NumberSet {
    /// The bound of all numbers: each is smaller.
    pub const BOUND: usize = WORDS * 64;

    /// The empty set.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Returns the set of all numbers below `end`.
    ///
    /// # Panics
    ///
    /// If `end` is above [`BOUND`](Self::BOUND).
    #[must_use]
    pub fn below(end: usize) -> Self {
        assert!(end <= Self::BOUND, "a set of {end} numbers: it can have {}", Self::BOUND);
        Self(core::array::from_fn(|word| match end.saturating_sub(word * 64) {
            0 => 0,
            some @ 1..64 => (1 << some) - 1,
            _ => u64::MAX,
        }))
    }

    /// Returns how many numbers there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Returns whether `number` is in the set.
    #[must_use]
    pub fn contains(self, number: usize) -> bool {
        number < Self::BOUND && self.0[number / 64] & (1 << (number % 64)) != 0
    }

    /// Returns whether all numbers are in `other`.
    #[must_use]
    pub fn is_subset(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// Returns the union with `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Returns the difference: the numbers that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Returns the smallest number.
    #[must_use]
    pub fn first(self) -> Option<usize> {
        self.first_from(0)
    }

    /// Returns the smallest number that is not below `from`.
    #[must_use]
    pub fn first_from(self, from: usize) -> Option<usize> {
        (from / 64..WORDS).find_map(|word| {
            let below = if word == from / 64 { (1 << (from % 64)) - 1 } else { 0 };
            let rest = self.0[word] & !below;
            (rest != 0).then(|| word * 64 + rest.trailing_zeros() as usize)
        })
    }

    /// Returns the largest number.
    #[must_use]
    pub fn last(self) -> Option<usize> {
        let word = (0..WORDS).rev().find(|&word| self.0[word] != 0)?;
        Some(word * 64 + self.0[word].ilog2() as usize)
    }

    /// Returns the number with `rank` smaller numbers before it.
    #[must_use]
    pub fn nth(self, rank: usize) -> Option<usize> {
        self.iter().nth(rank)
    }

    /// Returns how many numbers are smaller than `number`, if that is in the set.
    #[must_use]
    pub fn rank(self, number: usize) -> Option<usize> {
        self.contains(number).then(|| self.without(self.without(Self::below(number))).len())
    }

    /// Returns the `count` smallest numbers, or all.
    #[must_use]
    pub fn lowest(self, count: usize) -> Self {
        self.iter().take(count).collect()
    }

    /// Returns the numbers from the smallest to the largest.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut next = self.first();
        core::iter::from_fn(move || {
            let number = next?;
            next = self.first_from(number + 1);
            Some(number)
        })
    }

    /// Inserts `number`.
    ///
    /// # Panics
    ///
    /// If it is not below [`BOUND`](Self::BOUND).
    pub fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Removes `number`.
    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }
}

impl FromIterator<usize> for NumberSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut set = Self::EMPTY;
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

impl fmt::Debug for NumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
