//! A ring of indices: a queue of small numbers in a fixed array of words. No stopped thread can
//! hold it up.
//!
//! Why not the ring of every textbook, where a slot's number tells which turn it is: there a thread
//! that has taken its turn and stops holds up every thread that comes to the same slot. Here a
//! thread that finds a slot not ready leaves a mark in it and goes on to the next turn.
//!
//! A thread gets its turn by adding one to `tail` (to put an index in) or to `head` (to take one
//! out). The turn gives the slot, and the *cycle*: the number of times that the ring had been gone
//! round. A slot is one word:
//!
//! ```text
//!  63            order + 1    order   order - 1      0
//! ┌───────────────────────┬────────┬──────────────────┐
//! │ cycle                 │ unsafe │ index, or NONE   │     NONE: all ones
//! └───────────────────────┴────────┴──────────────────┘
//! 2^order slots, for at most 2^(order - 1) indices
//! ```
//!
//! A thread comes with a turn of cycle c:
//!
//! | comes to | finds in the slot | writes | and |
//! | --- | --- | --- | --- |
//! | put | an older cycle, NONE, not unsafe | (c, index) | is done |
//! | put | an older cycle, NONE, unsafe, and `head` is not past the turn | (c, index) | is done |
//! | put | anything else | | takes another turn |
//! | take | (c, index) | NONE for the index | is done |
//! | take | an older cycle, NONE | (c, NONE): the putter of this turn is too late | next |
//! | take | an older cycle, an index | unsafe: the putter of this turn must look at `head` | next |
//! | take | a newer cycle | | next |
//!
//! *Next*: the ring is empty if `tail` is not past the turn. Otherwise the thread takes another
//! one.
//!
//! # Why it ends
//!
//! Putting: of the 2^order slots at most half hold an index, so an undisturbed thread comes to one
//! that does not. Taking disturbs it, by marking the slots ahead of it. `threshold` ends that. A
//! taker that came to a slot in vain takes one from it. When it is used up, every thread finds the
//! ring empty until an index is put in, which sets it to `limit` again. So the takers stop, and a
//! putter gets through.
//!
//! Which threshold is high enough not to give up too early? When an index is put in, `head` is at
//! most two rounds behind it, and each slot in between uses up one. Besides, takers that found
//! nothing *before* may still be about to report it: one each, so the limit allows for [`TAKERS`]
//! of them. (The paper allows for as many as there are indices, and asks for no more threads than
//! that.)
//!
//! # Invariants
//!
//! 1. An index is in the ring at most once. At most 2^(order - 1) are used.
//! 2. A slot's cycle never goes back. In one cycle it holds an index at most once, put there by the
//!    one thread that has this turn.
//! 3. A slot of cycle c with an index is emptied only by the one taker that has this turn.
//! 4. When [`put`](IndexRing::put) returns, `threshold` is at least `limit` less the number of
//!    takers that found nothing since the putter took its turn. Or it was so when another thread
//!    took the index out.
//!
//! Cycles and turns are compared by their wrapping difference, so they may wrap: after 2^63 turns,
//! 292 years at one a nanosecond.
//!
//! # Orderings
//!
//! - **(p)** Release exchange of NONE for an index. It pairs with **(t)**, the Acquire load that
//!   finds the index: what the putter did before.
//! - **(m)** Release exchange that marks unsafe. It pairs with **(s)**, the Acquire load by a
//!   putter. (m) was after its thread added to `head`, so the putter that looks at `head` sees
//!   that.
//! - **(v)** Release addition of 0 to `tail` by a taker in vain. It pairs with **(n)**, the Acquire
//!   addition of 1 by a putter: what the taker did to `threshold` (Invariant 4).
//! - **(h)** Release addition to `head` by a taker. It pairs with **(e)**, the Acquire load by
//!   `is_empty`: a thread that sees the taker's turn sees everything that had been put in before.
//! - **(o)** Release emptying of a slot. It pairs with **(e)** as well: a thread that sees the slot
//!   empty sees that `head` has moved.
//!
//! (v) adds nothing, and is no load. Either it comes before (n), and the putter that reads
//!     `threshold` afterwards knows what the taker did. Or it comes after, and the taker knows that
//!     an index is about to be put in. A load could miss the latter, and the putter's read the
//!     former. The slots' exchanges by takers, Relaxed or not, carry on what (m) began, since they
//!     read the word they change.
//!
//! Source: Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue", DISC 2019
//! (SCQ). The paper takes sequential consistency for granted.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};

use Ordering::{Acquire, Relaxed, Release};

/// The number of threads that can be about to find a ring empty at once: as many as Linux gives
/// numbers to.
const TAKERS: u64 = 1 << 22;

/// The order of the number of slots on a line of 64 bytes. Successive turns are this many slots
/// apart, so that threads with successive turns do not share a line.
const LINE_ORDER: u32 = 3;

/// A ring of indices: see the [module](self).
pub(super) struct IndexRing {
    /// The next turn to take. Counted up by takers.
    head: CachePadded<AtomicU64>,
    /// The number of times that takers may come in vain before every thread finds the ring empty.
    /// Below 0 it is used up. A number in two's complement. Written by takers in vain, and by
    /// putters.
    threshold: CachePadded<AtomicU64>,
    /// The next turn to put. Counted up by putters, and moved by takers in vain.
    tail: CachePadded<AtomicU64>,
    /// The slots. Written by the threads with a turn.
    slots: Box<[AtomicU64]>,
    /// The logarithm of the number of slots.
    order: u32,
    /// The value that putters set `threshold` to.
    limit: u64,
}

impl IndexRing {
    /// Returns a ring with room for `indices` indices. It holds all of those if it is `full`, else
    /// none.
    ///
    /// Except in tests, `start`, the first turn, is 0, and `limit` is `None`: large enough.
    pub(super) fn new(indices: usize, full: bool, start: u64, limit: Option<u64>) -> Self {
        let slots = indices.checked_next_power_of_two().and_then(|slots| slots.checked_mul(2));
        let slots = slots.unwrap_or_else(|| panic!("no ring has room for {indices} values"));
        let order = slots.trailing_zeros();
        let count = slots as u64;
        let start = start & !(count - 1);
        let limit = limit.unwrap_or(2 * count + TAKERS);
        let mut words =
            vec![Self::cycle_at(order, start.wrapping_sub(count)) | (count - 1); count as usize];
        let filled = if full { indices as u64 } else { 0 };
        for index in 0..filled {
            let turn = start.wrapping_add(index);
            words[Self::slot_at(order, turn)] = Self::cycle_at(order, turn) | index;
        }
        Self {
            head: CachePadded::new(AtomicU64::fresh(start)),
            threshold: CachePadded::new(AtomicU64::fresh(if full { limit } else { u64::MAX })),
            tail: CachePadded::new(AtomicU64::fresh(start.wrapping_add(filled))),
            slots: words.into_iter().map(AtomicU64::fresh).collect(),
            order,
            limit,
        }
    }

    /// Returns the cycle of a turn, where a slot has it.
    #[inline]
    const fn cycle_at(order: u32, turn: u64) -> u64 {
        (turn << 1) & !((2 << order) - 1)
    }

    /// Returns the slot that a turn comes to.
    #[inline]
    const fn slot_at(order: u32, turn: u64) -> usize {
        let slot = turn & ((1 << order) - 1);
        if order <= LINE_ORDER {
            return slot as usize;
        }
        // The bits of the slot, rotated by those of a line.
        (((slot << LINE_ORDER) | (slot >> (order - LINE_ORDER))) & ((1 << order) - 1)) as usize
    }

    #[inline]
    fn turn(&self, turn: u64) -> (&AtomicU64, u64) {
        (&self.slots[Self::slot_at(self.order, turn)], Self::cycle_at(self.order, turn))
    }

    /// Returns all ones where an index would be.
    #[inline]
    const fn none(&self) -> u64 {
        (1 << self.order) - 1
    }

    #[inline]
    const fn unsafe_bit(&self) -> u64 {
        1 << self.order
    }

    #[inline]
    const fn cycle_of(&self, word: u64) -> u64 {
        word & !((2 << self.order) - 1)
    }

    #[inline]
    const fn index_of(&self, word: u64) -> u64 {
        word & self.none()
    }

    /// Puts an index in that is not in the ring.
    #[inline]
    pub(super) fn put(&self, index: usize) {
        let index = index as u64;
        loop {
            // Acquire (n): pairs with (v). Relaxed for the rest: a turn is only a number.
            let turn = self.tail.fetch_add(1, Acquire);
            let (slot, cycle) = self.turn(turn);
            // Acquire (s): pairs with (m).
            let word = slot.load(Acquire);
            if before(self.cycle_of(word), cycle)
                && self.index_of(word) == self.none()
                // Relaxed: (m), (s) show it past the turn if the mark was left by the taker with
                // this turn. A taker that comes later changes the word.
                && (word & self.unsafe_bit() == 0 || !before(turn, self.head.load(Relaxed)))
                // Release (p): pairs with (t). Relaxed on failure: another thread was here, and
                // there are more turns.
                && slot.compare_exchange(word, cycle | index, Release, Relaxed).is_ok()
            {
                // Relaxed: by (v), (n) it is not older than what the takers that were too early to
                // see the turn wrote. Rarely changed, so that the line stays where it is. Changed
                // by an exchange, so that no thread subtracts from the old value.
                if self.threshold.load(Relaxed) != self.limit {
                    self.threshold.swap(self.limit, Relaxed);
                }
                return;
            }
        }
    }

    /// Takes the oldest index out.
    #[inline]
    pub(super) fn take(&self) -> Option<usize> {
        // Relaxed: a thread that knows that an index was put in before knows that the threshold was
        // set or enough.
        if exhausted(self.threshold.load(Relaxed)) {
            return None;
        }
        loop {
            // Release (h): pairs with (e).
            let turn = self.head.fetch_add(1, Release);
            let (slot, cycle) = self.turn(turn);
            // Acquire (t): pairs with (p).
            let word = slot.load(Acquire);
            if self.cycle_of(word) == cycle {
                return Some(self.empty(slot, word));
            }
            match self.in_vain(turn, word) {
                Vain::Came(index) => return Some(index),
                Vain::Empty => return None,
                Vain::Next => {}
            }
        }
    }

    /// Takes the index of this thread's turn out of `word`.
    #[inline]
    fn empty(&self, slot: &AtomicU64, word: u64) -> usize {
        // Release (o): pairs with (e). Not a store: the word may have been marked meanwhile.
        slot.fetch_or(self.none(), Release);
        self.index_of(word) as usize
    }

    /// Goes on after a taker's slot was not ready.
    #[cold]
    fn in_vain(&self, turn: u64, mut word: u64) -> Vain {
        let (slot, cycle) = self.turn(turn);
        while before(self.cycle_of(word), cycle) {
            let marked = if self.index_of(word) == self.none() {
                cycle | (word & self.unsafe_bit()) | self.none()
            } else {
                word | self.unsafe_bit()
            };
            // Release (m): pairs with (s). Acquire on failure: as (t).
            match slot.compare_exchange(word, marked, Release, Acquire) {
                Ok(_) => break,
                Err(changed) => word = changed,
            }
            if self.cycle_of(word) == cycle {
                return Vain::Came(self.empty(slot, word));
            }
        }
        let next = turn.wrapping_add(1);
        // Relaxed: (v) publishes it.
        let threshold = self.threshold.fetch_sub(1, Relaxed);
        // Release (v): pairs with (n).
        let tail = self.tail.fetch_add(0, Release);
        if !before(next, tail) {
            self.catch_up(tail, next);
            return Vain::Empty;
        }
        if exhausted(threshold.wrapping_sub(1)) { Vain::Empty } else { Vain::Next }
    }

    /// Moves `tail` to where `head` is, so that the next putter does not come to slots that were
    /// marked.
    fn catch_up(&self, mut tail: u64, mut head: u64) {
        while before(tail, head) {
            // Relaxed: an exchange carries on what (v) began. On failure: only compared.
            match self.tail.compare_exchange(tail, head, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(moved) => tail = moved,
            }
            // Relaxed: only compared; an older one moves the tail less far.
            head = self.head.load(Relaxed);
        }
    }

    /// Returns the indices that are in it, the oldest first: all of them if no operation is going
    /// on.
    fn all(&self) -> impl Iterator<Item = usize> {
        // Relaxed, all: an estimate, or the caller is the only owner.
        let (head, tail) = (self.head.load(Relaxed), self.tail.load(Relaxed));
        // Taking in vain moves `head` past `tail`.
        let turns = if before(head, tail) { tail.wrapping_sub(head) } else { 0 };
        (0..turns).filter_map(move |turn| {
            let (slot, cycle) = self.turn(head.wrapping_add(turn));
            let word = slot.load(Relaxed);
            let index = self.index_of(word);
            (self.cycle_of(word) == cycle && index != self.none()).then_some(index as usize)
        })
    }

    /// Returns the number of indices in it.
    pub(super) fn len(&self) -> usize {
        self.all().count()
    }

    /// Returns the oldest index.
    pub(super) fn first(&self) -> Option<usize> {
        self.all().next()
    }

    /// Returns whether there was no index in it at some moment during the call.
    pub(super) fn is_empty(&self) -> bool {
        loop {
            // Relaxed: as in `take`.
            if exhausted(self.threshold.load(Relaxed)) {
                return true;
            }
            // Acquire (e): pairs with (h).
            let head = self.head.load(Acquire);
            // Relaxed: not older than what the takers that moved `head` knew.
            let tail = self.tail.load(Relaxed);
            let mut turn = head;
            let mut found = false;
            while before(turn, tail) && !found {
                let (slot, cycle) = self.turn(turn);
                // Acquire (e): pairs with (o).
                let word = slot.load(Acquire);
                found = self.cycle_of(word) == cycle && self.index_of(word) != self.none();
                turn = turn.wrapping_add(1);
            }
            // As long as no thread takes a turn at `head`, slots from there on only fill. So if all
            // are empty now, they were when `tail` was read.
            if self.head.load(Relaxed) == head {
                return !found;
            }
        }
    }
}

#[cfg(test)]
impl IndexRing {
    /// The number of turns that takers have taken.
    pub(super) fn turns_taken(&self) -> u64 {
        self.head.load(Relaxed)
    }
}

/// The next step of a taker that came in vain.
enum Vain {
    /// Take this index: it came while the slot was to be marked.
    Came(usize),
    /// Give up: the ring was empty.
    Empty,
    /// Take another turn.
    Next,
}

/// Returns whether turn or cycle `one` comes before `other`.
#[inline]
const fn before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}

/// Returns whether the threshold is used up.
#[inline]
const fn exhausted(threshold: u64) -> bool {
    (threshold as i64) < 0
}
