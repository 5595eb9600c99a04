//! The search for an order.
//!
//! A history is linearizable if each call can be given a moment between its beginning and its end so that, one call after another at these moments,
//! the specification allows every outcome. The search builds the order from the front: of the calls that are not in it yet, those may come next that
//! began before any of the others ended. It goes back when none of them fits.
//!
//! What makes it quick (Lowe): it remembers which pairs of *set of calls in the order* and *state after them* it has been at. Two orders of the same
//! calls that lead to the same state have the same future, and one of them is enough.
//!
//! A call that was never seen to return may have taken effect or not: it may come next, with any outcome, or never.
//!
//! The cost is exponential in the number of calls that overlap, at worst: the problem is NP-complete (Gibbons and Korach 1997). Histories of three
//! threads and a dozen calls take microseconds.
//!
//! ```text
//! frame  0            1                2
//!        {}           {a}              {a, c}           set of calls in the order
//!        state        state            state
//!        next: b      next: d          next: b          which call to try next here, when all that follows has failed
//! ```
//!
//! Source: Wing and Gong, "Testing and Verifying Concurrent Objects", JPDC 1993; Lowe, "Testing for Linearizability", Concurrency and Computation
//! 2017.

use std::collections::HashSet;

use crate::history::Call;
use crate::violation::Violation;
use crate::{HistoryOf, Specification};

/// Looks for an order of the calls of `history` that `initial` allows: the places of the calls in [`History::calls`](crate::History::calls), first to
/// last. Unfinished calls that had no effect are not in it.
///
/// # Errors
///
/// [`Violation`], if there is no such order. It holds the shortest beginning of the history that already has none, and displays it as a drawing.
///
/// ```
/// use stanchion_linearizability::specification::{Operation::{Pop, Push}, Outcome::{Popped, Pushed}, Stack};
/// use stanchion_linearizability::{Event::{Begin, End}, History, check};
///
/// let history = History::from_events([
///     Begin(0, Push(1)),
///     Begin(1, Pop),
///     End(1, Popped(Some(1))),
///     End(0, Pushed),
///     Begin(0, Pop),
///     End(0, Popped(Some(1))),
/// ])?;
/// let violation = check(&Stack::new(), &history).unwrap_err();
/// assert!(violation.to_string().contains("pop: 1"));
/// # Ok::<(), stanchion_linearizability::Malformed>(())
/// ```
pub fn check<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
) -> Result<Vec<usize>, Violation<S>> {
    search(initial, history).map_err(|_| shortest(initial, history))
}

/// As far as a search came.
pub(crate) struct Furthest<S> {
    /// The longest order that was possible.
    pub(crate) order: Vec<usize>,
    /// The state after it.
    pub(crate) state: S,
}

/// The shortest beginning of a history without an order that has none either.
///
/// A beginning of a linearizable history is linearizable, so the beginnings that fail are those from some end on.
fn shortest<S: Specification>(initial: &S, history: &HistoryOf<S>) -> Violation<S> {
    let mut ends: Vec<_> = history.calls().iter().map(|call| call.end).collect();
    ends.retain(|end| *end != u64::MAX);
    ends.sort_unstable();
    let first = ends.partition_point(|end| search(initial, &history.until(*end)).is_ok());
    // Some end fails: a history without ends is that of calls which may all have had no effect.
    let cut = history.until(ends.get(first).copied().unwrap_or(u64::MAX));
    let furthest = match search(initial, &cut) {
        Err(furthest) => furthest,
        Ok(order) => Furthest { order, state: initial.clone() },
    };
    Violation::new(cut, furthest)
}

/// A set of calls, by place.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Set(Box<[u64]>);

impl Set {
    fn empty(calls: usize) -> Self {
        Self(vec![0; calls.div_ceil(64)].into())
    }

    fn has(&self, call: usize) -> bool {
        self.0[call / 64] & (1 << (call % 64)) != 0
    }

    fn toggle(&mut self, call: usize) {
        self.0[call / 64] ^= 1 << (call % 64);
    }
}

/// A state on the way, and what has been tried from there.
struct Frame<S> {
    state: S,
    /// The call that led here; none for the first.
    by: Option<usize>,
    /// All calls before this one are in the order.
    first: usize,
    /// The next call to try.
    next: usize,
    /// The earliest end among the calls before `next` that are not in the order: a call that begins later cannot come first.
    horizon: u64,
    /// Further states that the call tried last may lead to.
    others: Vec<(S, usize)>,
}

impl<S> Frame<S> {
    fn new(state: S, by: Option<usize>, first: usize) -> Self {
        Self { state, by, first, next: first, horizon: u64::MAX, others: Vec::new() }
    }
}

pub(crate) fn search<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
) -> Result<Vec<usize>, Furthest<S>> {
    Search::new(history.calls(), initial).run()
}

struct Search<'h, S: Specification> {
    calls: &'h [Call<S::Operation, S::Outcome>],
    frames: Vec<Frame<S>>,
    /// The calls in the order.
    taken: Set,
    /// How many calls that returned are not in the order.
    missing: usize,
    been: HashSet<(Set, S)>,
    furthest: Furthest<S>,
}

impl<'h, S: Specification> Search<'h, S> {
    fn new(calls: &'h [Call<S::Operation, S::Outcome>], initial: &S) -> Self {
        Self {
            calls,
            frames: vec![Frame::new(initial.clone(), None, 0)],
            taken: Set::empty(calls.len()),
            missing: calls.iter().filter(|call| call.outcome.is_some()).count(),
            been: HashSet::new(),
            furthest: Furthest { order: Vec::new(), state: initial.clone() },
        }
    }

    fn run(mut self) -> Result<Vec<usize>, Furthest<S>> {
        while self.missing > 0 {
            let Some(frame) = self.frames.last_mut() else {
                return Err(self.furthest);
            };
            if let Some((state, call)) = frame.others.pop() {
                self.enter(state, call);
            } else if let Some(call) = self.candidate() {
                self.try_call(call);
            } else {
                self.leave();
            }
        }
        Ok(self.order())
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
            let place = frame.next;
            frame.next += 1;
            if !self.taken.has(place) {
                frame.horizon = frame.horizon.min(call.end);
                return Some(place);
            }
        }
        None
    }

    /// Finds where `place` leads from the last frame.
    fn try_call(&mut self, place: usize) {
        let call = &self.calls[place];
        let Some(frame) = self.frames.last_mut() else { return };
        let mut after = Vec::new();
        frame.state.step(&call.operation, call.outcome.as_ref(), &mut after);
        frame.others.extend(after.into_iter().map(|state| (state, place)));
    }

    /// Puts `place` into the order, unless its calls have led to this state before.
    fn enter(&mut self, state: S, place: usize) {
        self.taken.toggle(place);
        if !self.been.insert((self.taken.clone(), state.clone())) {
            self.taken.toggle(place);
            return;
        }
        self.missing -= usize::from(self.calls[place].outcome.is_some());
        let first = self.frames.last().map_or(0, |frame| frame.first);
        let mut calls = first..self.calls.len();
        let first = calls.find(|call| !self.taken.has(*call)).unwrap_or(self.calls.len());
        self.frames.push(Frame::new(state.clone(), Some(place), first));
        if self.frames.len() - 1 > self.furthest.order.len() {
            self.furthest = Furthest { order: self.order(), state };
        }
    }

    /// Goes back by one call.
    fn leave(&mut self) {
        if let Some(place) = self.frames.pop().and_then(|frame| frame.by) {
            self.taken.toggle(place);
            self.missing += usize::from(self.calls[place].outcome.is_some());
        }
    }
}
