//! The search for an order, for any specification.
//!
//! It builds the order from the front. Of the calls that are not in the order yet, those may come
//! next that began before any of the others ended. The search goes back when none of them fits.
//!
//! What makes it quick (Lowe): it remembers each pair of *set of calls in the order* and *state
//! after them* that it has reached. Two orders of the same calls that lead to the same state have
//! the same future, and one of them is enough.
//!
//! A call that was never seen to return may have taken effect or not. It may come next with any
//! outcome, or never.
//!
//! The cost is exponential in the number of calls that overlap, at worst: the problem is
//! NP-complete (Gibbons and Korach 1997). So each call that is tried, and each pair that is
//! remembered, is paid for from a budget.
//!
//! ```text
//! frame  0            1                2
//!        {}           {a}              {a, c}           set of calls in the order
//!        state        state            state
//!        next: b      next: d          next: b          call to try when the later frames fail
//! ```
//!
//! Source: Wing and Gong, "Testing and Verifying Concurrent Objects", JPDC 1993; Lowe, "Testing
//! for Linearizability", Concurrency and Computation 2017.

use core::hash::{Hash, Hasher};
use std::collections::HashSet;

use crate::budget::{Purse, Spent};
use crate::history::Call;
use crate::{HistoryOf, Specification};

/// The answer of a search.
pub(crate) enum Found<S> {
    /// An order that the specification allows, as positions in the history.
    Order(Vec<usize>),
    /// There is no order. This is how far one came.
    Nothing(Furthest<S>),
    /// The budget was spent. This is how far an order had come by then.
    Undecided(Furthest<S>),
}

/// The longest order that a search could build.
pub(crate) struct Furthest<S> {
    /// The order, as positions in the history.
    pub(crate) order: Vec<usize>,
    /// The state after it.
    pub(crate) state: S,
}

/// Looks for an order of the calls of `history` that `initial` allows. The memory that it pays for
/// is free again when it returns.
pub(crate) fn search<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
    purse: &mut Purse,
) -> Found<S> {
    let before = *purse;
    let mut search = Search::new(history.calls(), initial);
    let answer = search.run(purse);
    purse.restore_memory(before);
    match answer {
        Ok(true) => Found::Order(search.order()),
        Ok(false) => Found::Nothing(search.furthest),
        Err(Spent) => Found::Undecided(search.furthest),
    }
}

/// A set of calls, by position.
struct Set(Vec<u64>);

/// A set in as few words as tell it from the others: the calls before those of `words` are all in
/// it, those after them are not.
#[derive(PartialEq, Eq, Hash)]
struct Compact {
    /// The number of words that are full, before `words`.
    full: usize,
    /// The other words, up to the last that is not empty.
    words: Box<[u64]>,
}

impl Set {
    fn empty(calls: usize) -> Self {
        Self(vec![0; calls.div_ceil(64)])
    }

    fn has(&self, call: usize) -> bool {
        self.0[call / 64] & (1 << (call % 64)) != 0
    }

    fn toggle(&mut self, call: usize) {
        self.0[call / 64] ^= 1 << (call % 64);
    }

    /// `first` is the first call that is not in the set.
    fn compact(&self, first: usize) -> Compact {
        let full = (first / 64).min(self.0.len());
        let end = self.0.iter().rposition(|word| *word != 0).map_or(full, |last| last + 1);
        Compact { full, words: self.0[full..end.max(full)].into() }
    }
}

/// A hasher that counts the bytes it is fed: the size of a state, near enough.
#[derive(Default)]
struct Size(usize);

impl Hasher for Size {
    fn write(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn finish(&self) -> u64 {
        self.0 as u64
    }
}

fn size_of_state<S: Hash>(state: &S) -> usize {
    let mut size = Size::default();
    state.hash(&mut size);
    size_of::<S>() + size.0
}

/// A state on the way, and what has been tried from there.
struct Frame<S> {
    /// The state after the calls in the order so far.
    state: S,
    /// The call that led here; none for the first frame.
    by: Option<usize>,
    /// All calls before this one are in the order.
    first: usize,
    /// The next call to try.
    next: usize,
    /// The earliest end among the calls before `next` that are not in the order. A call that
    /// begins later cannot come first.
    horizon: u64,
    /// Further states that the call tried last may lead to.
    others: Vec<(S, usize)>,
    /// The bytes that the frame was paid for.
    bytes: usize,
}

impl<S> Frame<S> {
    fn new(state: S, by: Option<usize>, first: usize, bytes: usize) -> Self {
        Self { state, by, first, next: first, horizon: u64::MAX, others: Vec::new(), bytes }
    }
}

struct Search<'h, S: Specification> {
    /// The calls of the history, by their begin.
    calls: &'h [Call<S::Operation, S::Outcome>],
    /// The states from the first one to the current one.
    frames: Vec<Frame<S>>,
    /// The calls in the order.
    taken: Set,
    /// The number of calls that returned and are not in the order.
    missing: usize,
    /// The pairs that the search has been at.
    been: HashSet<(Compact, S)>,
    /// The longest order that was found, and its state.
    furthest: Furthest<S>,
}

impl<'h, S: Specification> Search<'h, S> {
    fn new(calls: &'h [Call<S::Operation, S::Outcome>], initial: &S) -> Self {
        Self {
            calls,
            frames: vec![Frame::new(initial.clone(), None, 0, 0)],
            taken: Set::empty(calls.len()),
            missing: calls.iter().filter(|call| call.outcome.is_some()).count(),
            been: HashSet::new(),
            furthest: Furthest { order: Vec::new(), state: initial.clone() },
        }
    }

    /// Searches for an order. Returns `true` if there is one: the frames hold it.
    fn run(&mut self, purse: &mut Purse) -> Result<bool, Spent> {
        while self.missing > 0 {
            let Some(frame) = self.frames.last_mut() else {
                return Ok(false);
            };
            if let Some((state, call)) = frame.others.pop() {
                self.enter(state, call, purse)?;
            } else if let Some(call) = self.candidate() {
                purse.steps(1)?;
                self.try_call(call);
            } else {
                self.leave(purse);
            }
        }
        Ok(true)
    }

    fn order(&self) -> Vec<usize> {
        self.frames.iter().filter_map(|frame| frame.by).collect()
    }

    /// The next call that may come first of those that are not in the order.
    fn candidate(&mut self) -> Option<usize> {
        let frame = self.frames.last_mut()?;
        while let Some(call) = self.calls.get(frame.next) {
            if call.begin > frame.horizon {
                return None;
            }
            let position = frame.next;
            frame.next += 1;
            if !self.taken.has(position) {
                frame.horizon = frame.horizon.min(call.end);
                return Some(position);
            }
        }
        None
    }

    /// Finds where the call at `position` leads from the last frame.
    fn try_call(&mut self, position: usize) {
        let call = &self.calls[position];
        let Some(frame) = self.frames.last_mut() else { return };
        let mut after = Vec::new();
        frame.state.step(&call.operation, call.outcome.as_ref(), &mut after);
        frame.others.extend(after.into_iter().map(|state| (state, position)));
    }

    /// Puts the call at `position` into the order, unless its calls have led to this state before.
    fn enter(&mut self, state: S, position: usize, purse: &mut Purse) -> Result<(), Spent> {
        let size = size_of_state(&state);
        purse.steps(size / 64)?;
        self.taken.toggle(position);
        let first = self.frames.last().map_or(0, |frame| frame.first);
        let mut calls = first..self.calls.len();
        let first = calls.find(|call| !self.taken.has(*call)).unwrap_or(self.calls.len());
        let set = self.taken.compact(first);
        // The table has up to twice the room that it needs, and the allocator its overhead.
        let bytes = size + 8 * set.words.len() + 2 * size_of::<(Compact, S)>();
        if !self.been.insert((set, state.clone())) {
            self.taken.toggle(position);
            return Ok(());
        }
        self.missing -= usize::from(self.calls[position].outcome.is_some());
        let frame = size_of::<Frame<S>>() + size;
        self.frames.push(Frame::new(state.clone(), Some(position), first, frame));
        if self.frames.len() - 1 > self.furthest.order.len() {
            self.furthest = Furthest { order: self.order(), state };
        }
        purse.bytes(bytes + frame)
    }

    /// Goes back by one call.
    fn leave(&mut self, purse: &mut Purse) {
        let Some(frame) = self.frames.pop() else { return };
        purse.returned(frame.bytes);
        if let Some(position) = frame.by {
            self.taken.toggle(position);
            self.missing += usize::from(self.calls[position].outcome.is_some());
        }
    }
}
