//! The accesses of a run to single words, and the words that share a line.
//!
//! Words are told apart by identity (see `arena`), counted while the run goes on, and given their
//! names at its end. A name covers a stretch of memory. If names are nested, a word has the one
//! that begins last, and the shortest of those. Words of the same name are counted together.

use crate::Time;
use crate::arena::Identities;
use crate::memory::{Accesses, Done, Kind, Line};
use core::cmp::Reverse;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Neighbours that are listed by name.
const NEIGHBOURS: usize = 8;
/// Labels are laid on blocks of this size one by one: beyond it, neighbours in foreign memory are
/// not neighbours by identity.
const BLOCK: usize = 128;

/// The accesses to a word, or to all words of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordStatistics {
    /// Its [label](crate::inside::label), or where it is.
    pub name: String,
    /// Set if that is a label.
    pub labelled: bool,
    /// The number of words of that name that were touched.
    pub words: u64,
    /// On how many lines of the machine they are.
    pub lines: u64,
    /// The accesses to them.
    pub accesses: Accesses,
    /// The time that threads were stalled by those accesses.
    pub stalled: Time,
    /// The time that threads spun on them: watched them in their caches.
    pub spun: Time,
    /// The time that threads were parked on them, from giving their processor up until they could
    /// have one again.
    pub parked: Time,
    /// The names of other words that were touched on one of these lines: labels first, eight names
    /// at most.
    pub shares_line_with: Vec<String>,
}

impl WordStatistics {
    /// Returns the key of the order: the longest waited for come first. The name makes the order
    /// unique.
    fn rank(&self) -> impl Ord + '_ {
        (Reverse(self.stalled + self.spun + self.parked), Reverse(self.accesses.all), &self.name)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// The accesses.
    accesses: Accesses,
    /// The time that threads were stalled.
    stalled: Time,
    /// The time that threads spun.
    spun: Time,
    /// The time that threads were parked.
    parked: Time,
}

/// Counts by word, of a run that was asked for them.
#[derive(Debug)]
pub(crate) struct Words {
    /// The number of unlabelled words that are kept.
    limit: usize,
    /// The counts, by identity.
    counted: HashMap<u64, Counted>,
    /// By where it begins, then the longest first.
    labels: BTreeMap<(u64, Reverse<u64>), String>,
}

impl Words {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, counted: HashMap::new(), labels: BTreeMap::new() }
    }

    /// An access that began at `at`.
    pub(crate) fn add(&mut self, identity: u64, kind: Kind, at: Time, done: &Done) {
        let counted = self.counted.entry(identity).or_default();
        counted.accesses.add(kind, done);
        if !done.hit {
            counted.stalled += done.at - at;
        }
    }

    pub(crate) fn spun(&mut self, identity: u64, time: Time) {
        self.counted.entry(identity).or_default().spun += time;
    }

    pub(crate) fn parked(&mut self, identity: u64, time: Time) {
        self.counted.entry(identity).or_default().parked += time;
    }

    /// Names `bytes` bytes from `address` on; nothing if there are none.
    pub(crate) fn label(
        &mut self,
        identities: &mut Identities,
        address: *const (),
        bytes: usize,
        name: &str,
    ) {
        let (mut at, end) = (address.addr(), address.addr().saturating_add(bytes));
        while at < end {
            let next = (at / BLOCK + 1).saturating_mul(BLOCK).min(end);
            let identity = identities.of(address.with_addr(at));
            let length = (next - at) as u64;
            self.labels.insert((identity, Reverse(length)), name.to_owned());
            at = next;
        }
    }

    fn label_of(&self, identity: u64) -> Option<&str> {
        let before = self.labels.range(..=(identity, Reverse(0))).rev();
        // A label lies within one block, so none that begins further away covers the word.
        let near = before.take_while(|((start, _), _)| identity - start < BLOCK as u64);
        let mut covering = near.filter(|((start, length), _)| identity - start < length.0);
        covering.next().map(|(_, name)| name.as_str())
    }

    /// Returns all words that have a label, and of the others the longest waited for.
    pub(crate) fn sum_up(&self, line_of: impl Fn(u64) -> Line) -> Vec<WordStatistics> {
        let mut all: BTreeMap<(bool, String), (WordStatistics, BTreeSet<Line>)> = BTreeMap::new();
        let mut on_line: BTreeMap<Line, BTreeSet<(bool, String)>> = BTreeMap::new();
        for (&identity, counted) in &self.counted {
            let label = self.label_of(identity);
            let unlabelled = label.is_none();
            let name = label.map_or_else(|| crate::arena::location(identity), str::to_owned);
            let key = (unlabelled, name);
            let line = line_of(identity);
            on_line.entry(line).or_default().insert(key.clone());
            let (word, lines) = all.entry(key).or_default();
            word.words += 1;
            word.accesses.merge(&counted.accesses);
            word.stalled += counted.stalled;
            word.spun += counted.spun;
            word.parked += counted.parked;
            lines.insert(line);
        }
        let named = |((unlabelled, name), (mut word, lines)): (
            (bool, String),
            (WordStatistics, BTreeSet<Line>),
        )| {
            let mine = (unlabelled, name);
            let here = lines.iter().filter_map(|line| on_line.get(line)).flatten();
            let neighbours: BTreeSet<_> = here.filter(|&other| *other != mine).collect();
            word.shares_line_with =
                neighbours.into_iter().take(NEIGHBOURS).map(|(_, name)| name.clone()).collect();
            (word.lines, word.labelled, word.name) = (lines.len() as u64, !mine.0, mine.1);
            word
        };
        let mut words: Vec<_> = all.into_iter().map(named).collect();
        words.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let mut left = self.limit;
        words.retain(|word| {
            let keeps = word.labelled || left > 0;
            left -= usize::from(keeps && !word.labelled);
            keeps
        });
        words
    }
}
