//! A worker's own account of its parks, which other threads read.

use crate::sequence::Sequence;

/// A number of words in [`Parks`].
const WORDS: usize = 8;

/// The content of a history. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parks {
    /// The moment of the last change between parked and awake.
    pub(crate) changed_at: u64,
    /// 1 while it is parked.
    pub(crate) is_parked: u64,
    /// Times that it parked.
    pub(crate) parks: u64,
    /// Time awake before the last change.
    pub(crate) awake: u64,
    /// The number of switch records at the last unpark.
    pub(crate) first_record: u64,
    /// Time blocked while awake before the last change, by the switch records.
    pub(crate) blocked: u64,
    /// Time preempted while awake before the last change, by the switch records.
    pub(crate) preempted: u64,
    /// Switch records that were overwritten before they were read.
    pub(crate) lost: u64,
}

impl Parks {
    /// Returns the time that it has been awake until `now`.
    pub(crate) fn awake_until(&self, now: u64) -> u64 {
        self.awake + self.awake_for(now).unwrap_or(0)
    }

    /// Returns the time since it was last parked, or `None` if it is parked.
    pub(crate) fn awake_for(&self, now: u64) -> Option<u64> {
        (self.is_parked == 0).then(|| now.saturating_sub(self.changed_at))
    }

    /// Puts the fields in a row.
    fn words(self) -> [u64; WORDS] {
        [
            self.changed_at,
            self.is_parked,
            self.parks,
            self.awake,
            self.first_record,
            self.blocked,
            self.preempted,
            self.lost,
        ]
    }

    /// Takes a row of [`words`](Self::words) apart.
    fn from_words(words: [u64; WORDS]) -> Self {
        let [changed_at, is_parked, parks, awake, first_record, blocked, preempted, lost] = words;
        Self { changed_at, is_parked, parks, awake, first_record, blocked, preempted, lost }
    }
}

/// A worker's account of its parks. Only the worker's own thread changes it.
#[derive(Debug)]
pub(crate) struct History {
    /// The fields of [`Parks`]. Written by the worker.
    words: Sequence<WORDS>,
}

impl History {
    /// Begins an account.
    pub(crate) fn new(parks: Parks) -> Self {
        Self { words: Sequence::new(parks.words()) }
    }

    /// Changes the account. Called by the worker alone.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Parks)) {
        self.words.change(|words| {
            let mut parks = Parks::from_words(*words);
            change(&mut parks);
            *words = parks.words();
        });
    }

    /// Reads the account. Returns `None` if the worker was writing each time.
    pub(crate) fn read(&self) -> Option<Parks> {
        self.words.read().map(Parks::from_words)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn words_keep_their_order() {
        let words = std::array::from_fn(|index| index as u64 + 1);
        assert_eq!(Parks::from_words(words).words(), words);
    }

    #[test]
    fn readers_see_one_moment() {
        const CHANGES: u64 = 200_000;
        let history = History::new(Parks::default());
        let ends = AtomicBool::new(false);
        let read = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut read = 0_u64;
                while !ends.load(Ordering::Relaxed) || read == 0 {
                    let Some(seen) = history.read() else { continue };
                    read += 1;
                    let words = seen.words();
                    assert!(words.iter().all(|&word| word == words[0]), "{seen:?}");
                }
                read
            });
            for number in 1..=CHANGES {
                history.change(|parks| *parks = Parks::from_words([number; WORDS]));
            }
            ends.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        assert!(read > 0);
        assert_eq!(history.read().unwrap(), Parks::from_words([CHANGES; WORDS]));
    }
}
