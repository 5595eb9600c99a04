//! A set of processors: those that have a copy of a line.
//!
//! It is not a hash set, because every access asks one. The first 64 processors are the bits of one
//! word in the line's own entry. Only a machine with more processors allocates, once for each line
//! that one of those touches.

use crate::machine::PROCESSORS;

/// Processors from 64 on, a bit each.
const HIGH: usize = PROCESSORS / 64 - 1;

/// A set of processor numbers below [`PROCESSORS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Processors {
    /// The first 64 processors, a bit each.
    low: u64,
    /// The others, a bit each, once one of them is in the set.
    high: Option<Box<[u64; HIGH]>>,
}

impl Processors {
    pub(crate) fn contains(&self, processor: usize) -> bool {
        if processor < 64 {
            return self.low >> processor & 1 == 1;
        }
        self.high.as_ref().is_some_and(|high| high[processor / 64 - 1] >> (processor % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, processor: usize) {
        if processor < 64 {
            self.low |= 1 << processor;
        } else {
            let high = self.high.get_or_insert_with(|| Box::new([0; HIGH]));
            high[processor / 64 - 1] |= 1 << (processor % 64);
        }
    }

    pub(crate) fn remove(&mut self, processor: usize) {
        if processor < 64 {
            self.low &= !(1 << processor);
        } else if let Some(high) = &mut self.high {
            high[processor / 64 - 1] &= !(1 << (processor % 64));
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.words().map(u64::count_ones).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words().all(|word| word == 0)
    }

    /// Returns how many there are besides `processor`.
    pub(crate) fn others(&self, processor: usize) -> u32 {
        self.len() - u32::from(self.contains(processor))
    }

    /// Removes all but `processor`, which stays if it was there. Returns how many were removed.
    pub(crate) fn drop_others(&mut self, processor: usize) -> u32 {
        let (stays, others) = (self.contains(processor), self.others(processor));
        if others > 0 {
            self.low = 0;
            if let Some(high) = &mut self.high {
                high.fill(0);
            }
            if stays {
                self.insert(processor);
            }
        }
        others
    }

    /// The smallest, if there is one.
    pub(crate) fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words().enumerate().flat_map(|(index, mut word)| {
            core::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        core::iter::once(self.low).chain(self.high.iter().flat_map(|high| high.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(steps in proptest::collection::vec((0..PROCESSORS, 0..4), 1..60)) {
            let (mut set, mut reference) = (Processors::default(), BTreeSet::new());
            for (processor, step) in steps {
                if step == 1 {
                    set.remove(processor);
                    reference.remove(&processor);
                } else if step == 0 {
                    let dropped = reference.len() - usize::from(reference.contains(&processor));
                    prop_assert_eq!(set.drop_others(processor) as usize, dropped);
                    reference.retain(|&other| other == processor);
                } else {
                    set.insert(processor);
                    reference.insert(processor);
                }
                prop_assert!(set.iter().eq(reference.iter().copied()));
                prop_assert_eq!((set.len() as usize, set.is_empty()), (reference.len(), reference.is_empty()));
                prop_assert_eq!(set.contains(processor), reference.contains(&processor));
                prop_assert_eq!(set.first(), reference.first().copied());
            }
        }
    }
}
