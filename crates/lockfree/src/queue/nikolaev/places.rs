//! A ring of places: a queue of small numbers that no thread can hold up, in a fixed array of
//! words.
//!
//! Why not the ring of every textbook, where a slot's number says whose turn it is: there a thread
//! that has taken its turn and stops holds up everyone who comes to the same slot. Here whoever
//! finds a slot not ready leaves a mark in it and goes on to the next turn.
//!
//! Turns are handed out by adding one to `tail` (to put a place in) or to `head` (to take one out).
//! The turn says the slot, and the *cycle*: how often the ring had been gone round. A slot is one
//! word:
//!
//! ```text
//!  63            order + 1    order   order - 1      0      2^order slots, for at most 2^(order - 1) places
//! ┌───────────────────────┬────────┬──────────────────┐
//! │ cycle                 │ unsafe │ place, or NONE   │     NONE: all ones
//! └───────────────────────┴────────┴──────────────────┘
//! ```
//!
//! | who comes, with a turn of cycle c | finds in the slot | does | and |
//! | --- | --- | --- | --- |
//! | putting | an older cycle, NONE, not unsafe | (c, place) | is done |
//! | putting | an older cycle, NONE, unsafe, and `head` is not past the turn | (c, place) | is done |
//! | putting | anything else | | takes another turn |
//! | taking | (c, place) | NONE for the place | is done |
//! | taking | an older cycle, NONE | (c, NONE): who wanted to put here is too late | next |
//! | taking | an older cycle, a place | marks it unsafe: who comes to put here in cycle c must look at `head` | next |
//! | taking | a newer cycle | | next |
//!
//! *Next*: the ring is empty if `tail` is not past the turn; otherwise take another one.
//!
//! # Why it ends
//!
//! Putting: of the 2^order slots at most half hold a place, so whoever is not disturbed comes to
//! one that does not. Taking disturbs it, by marking the slots ahead of it. That is what `patience`
//! is for: a taker that came to a slot in vain takes one from it, and when it is used up everyone
//! finds the ring empty until something is put in, which sets it to `limit` again. So the takers
//! stop, and a putter gets through.
//!
//! How much patience is enough not to give up too early? When a place is put in, `head` is at most
//! two rounds behind it, and each slot in between uses up one. Besides, takers that found nothing
//! *before* may still be about to say so: one each, so the limit allows for [`TAKERS`] of them.
//! (The paper allows for as many as there are places, and asks for no more threads than that.)
//!
//! # Invariants
//!
//! 1. A place is in the ring at most once. At most 2^(order - 1) are used.
//! 2. A slot's cycle never goes back. In one cycle it holds a place at most once, put there by the
//!    one thread that has this turn.
//! 3. A slot of cycle c with a place is emptied only by the one taker whose turn it is.
//! 4. When [`put`](Places::put) returns, `patience` is at least `limit` less the number of takers
//!    that found nothing since the place's turn was taken, or was so when somebody else took the
//!    place out.
//!
//! Cycles and turns are compared by their wrapping difference, so they may wrap: after 2^63 turns,
//! 292 years at one a nanosecond.
//!
//! # Orderings
//!
//! | what | pairs with | for |
//! | --- | --- | --- |
//! | (p) Release exchange of NONE for a place | (t) Acquire load that finds the place | what the putter did to it before |
//! | (m) Release exchange that marks unsafe | (s) Acquire load by a putter | (m) was after its thread added to `head`; so the putter that looks at `head` sees that |
//! | (v) Release addition of 0 to `tail` by a taker in vain | (n) Acquire addition of 1 by a putter | Invariant 4: what the taker did to `patience` |
//!
//! | (h) Release addition to `head` by a taker | (e) Acquire load by `is_empty` | who sees the taker's turn sees what had been put in before |
//! | (o) Release emptying of a slot | (e) Acquire load by `is_empty` | who sees it empty sees that `head` has moved |
//!
//! (v) adds nothing, and is no load: either it comes before (n), and the putter that reads
//!     `patience` afterwards knows what the taker did; or it comes after, and the taker knows that
//!     somebody is about to put something in. A load could miss the latter, and the putter's read
//!     the former. The slots' exchanges by takers, Relaxed or not, carry on what (m) began, since
//!     they read the word they change.
//!
//! Source: Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue", DISC 2019
//! (SCQ). The paper takes sequential consistency for granted.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU64, Fresh, Ordering};

use Ordering::{Acquire, Relaxed, Release};

/// So many threads can be about to find a ring empty at once: as many as Linux gives numbers to.
const TAKERS: u64 = 1 << 22;

/// Places on a line of 64 bytes: neighbours in turn are this many slots apart, so that threads with
/// successive turns do not share a line.
const LINE_ORDER: u32 = 3;

/// See the [module](self).
pub(super) struct Places {
    /// The next turn to take.
    head: CachePadded<AtomicU64>,
    /// How often takers may come in vain before everyone finds the ring empty; below 0 it is used
    /// up. A number in two's complement.
    patience: CachePadded<AtomicU64>,
    /// The next turn to put.
    tail: CachePadded<AtomicU64>,
    slots: Box<[AtomicU64]>,
    order: u32,
    /// What `patience` is set to.
    limit: u64,
}

impl Places {
    /// With the places `0..places` in it, or none of them, and room for all.
    ///
    /// But in tests, `start`, the first turn, is 0, and `limit` is `None`: large enough.
    pub(super) fn new(places: usize, full: bool, start: u64, limit: Option<u64>) -> Self {
        let slots = places.checked_next_power_of_two().and_then(|slots| slots.checked_mul(2));
        let slots = slots.unwrap_or_else(|| panic!("no ring has room for {places} values"));
        let order = slots.trailing_zeros();
        let count = slots as u64;
        let start = start & !(count - 1);
        let limit = limit.unwrap_or(2 * count + TAKERS);
        let mut words =
            vec![Self::cycle_at(order, start.wrapping_sub(count)) | (count - 1); count as usize];
        let filled = if full { places as u64 } else { 0 };
        for place in 0..filled {
            let turn = start.wrapping_add(place);
            words[Self::slot_at(order, turn)] = Self::cycle_at(order, turn) | place;
        }
        Self {
            head: CachePadded::new(AtomicU64::fresh(start)),
            patience: CachePadded::new(AtomicU64::fresh(if full { limit } else { u64::MAX })),
            tail: CachePadded::new(AtomicU64::fresh(start.wrapping_add(filled))),
            slots: words.into_iter().map(AtomicU64::fresh).collect(),
            order,
            limit,
        }
    }

    /// The cycle of a turn, where a slot has it.
    #[inline]
    const fn cycle_at(order: u32, turn: u64) -> u64 {
        (turn << 1) & !((2 << order) - 1)
    }

    /// Which slot a turn comes to.
    #[inline]
    const fn slot_at(order: u32, turn: u64) -> usize {
        let slot = turn & ((1 << order) - 1);
        if order <= LINE_ORDER {
            return slot as usize;
        }
        // The bits of the slot, turned round by those of a line.
        (((slot << LINE_ORDER) | (slot >> (order - LINE_ORDER))) & ((1 << order) - 1)) as usize
    }

    #[inline]
    fn turn(&self, turn: u64) -> (&AtomicU64, u64) {
        (&self.slots[Self::slot_at(self.order, turn)], Self::cycle_at(self.order, turn))
    }

    /// All ones where a place would be.
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
    const fn place_of(&self, word: u64) -> u64 {
        word & self.none()
    }

    /// Puts a place in that is not in it.
    #[inline]
    pub(super) fn put(&self, place: usize) {
        let place = place as u64;
        loop {
            // Acquire (n): pairs with (v). Relaxed for the rest: a turn is only a number.
            let turn = self.tail.fetch_add(1, Acquire);
            let (slot, cycle) = self.turn(turn);
            // Acquire (s): pairs with (m).
            let word = slot.load(Acquire);
            if before(self.cycle_of(word), cycle)
                && self.place_of(word) == self.none()
                // Relaxed: (m), (s) show it past the turn if the mark was left by the taker with
                // this turn; one that comes later changes the word.
                && (word & self.unsafe_bit() == 0 || !before(turn, self.head.load(Relaxed)))
                // Release (p): pairs with (t). Relaxed on failure: somebody was here, and there are
                // more turns.
                && slot.compare_exchange(word, cycle | place, Release, Relaxed).is_ok()
            {
                // Relaxed: by (v), (n) it is not older than what those said who were too early to
                // see the turn. Rarely changed, so that the line stays where it is; by an exchange,
                // so that nobody subtracts from what it was.
                if self.patience.load(Relaxed) != self.limit {
                    self.patience.swap(self.limit, Relaxed);
                }
                return;
            }
        }
    }

    /// Takes the oldest place out.
    #[inline]
    pub(super) fn take(&self) -> Option<usize> {
        // Relaxed: whoever knows that a place was put in before knows that patience was set or
        // enough.
        if exhausted(self.patience.load(Relaxed)) {
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
                Vain::Came(place) => return Some(place),
                Vain::Empty => return None,
                Vain::Next => {}
            }
        }
    }

    /// Takes the place of this thread's turn out of `word`.
    #[inline]
    fn empty(&self, slot: &AtomicU64, word: u64) -> usize {
        // Release (o): pairs with (e). Not a store: the word may have been marked meanwhile.
        slot.fetch_or(self.none(), Release);
        self.place_of(word) as usize
    }

    /// A taker's slot was not ready.
    #[cold]
    fn in_vain(&self, turn: u64, mut word: u64) -> Vain {
        let (slot, cycle) = self.turn(turn);
        while before(self.cycle_of(word), cycle) {
            let marked = if self.place_of(word) == self.none() {
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
        let patience = self.patience.fetch_sub(1, Relaxed);
        // Release (v): pairs with (n).
        let tail = self.tail.fetch_add(0, Release);
        if !before(next, tail) {
            self.catch_up(tail, next);
            return Vain::Empty;
        }
        if exhausted(patience.wrapping_sub(1)) { Vain::Empty } else { Vain::Next }
    }

    /// Moves `tail` to where `head` is, so that the next to put does not come to slots that were
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

    /// The places that are in it, the oldest first: all of them if no operation is going on.
    fn all(&self) -> impl Iterator<Item = usize> {
        // Relaxed, all: an estimate, or the caller is the only owner.
        let (head, tail) = (self.head.load(Relaxed), self.tail.load(Relaxed));
        // Taking in vain moves `head` past `tail`.
        let turns = if before(head, tail) { tail.wrapping_sub(head) } else { 0 };
        (0..turns).filter_map(move |turn| {
            let (slot, cycle) = self.turn(head.wrapping_add(turn));
            let word = slot.load(Relaxed);
            let place = self.place_of(word);
            (self.cycle_of(word) == cycle && place != self.none()).then_some(place as usize)
        })
    }

    /// How many places are in it.
    pub(super) fn len(&self) -> usize {
        self.all().count()
    }

    /// The oldest place.
    pub(super) fn first(&self) -> Option<usize> {
        self.all().next()
    }

    /// Whether there was no place in it at some moment during the call.
    pub(super) fn is_empty(&self) -> bool {
        loop {
            // Relaxed: as in `take`.
            if exhausted(self.patience.load(Relaxed)) {
                return true;
            }
            // Acquire (e): pairs with (h).
            let head = self.head.load(Acquire);
            // Relaxed: not older than what the takers knew who moved `head`.
            let tail = self.tail.load(Relaxed);
            let mut turn = head;
            let mut found = false;
            while before(turn, tail) && !found {
                let (slot, cycle) = self.turn(turn);
                // Acquire (e): pairs with (o).
                let word = slot.load(Acquire);
                found = self.cycle_of(word) == cycle && self.place_of(word) != self.none();
                turn = turn.wrapping_add(1);
            }
            // As long as nobody takes a turn at `head`, slots from there on only fill: those that
            // are empty now all were when `tail` was read.
            if self.head.load(Relaxed) == head {
                return !found;
            }
        }
    }
}

#[cfg(test)]
impl Places {
    /// The number of turns that takers have taken.
    pub(super) fn turns_taken(&self) -> u64 {
        self.head.load(Relaxed)
    }
}

/// What a taker that came in vain does.
enum Vain {
    /// Take this place: it came while the slot was to be marked.
    Came(usize),
    /// Give up: the ring was empty.
    Empty,
    /// Take another turn.
    Next,
}

/// Whether turn or cycle `one` comes before `other`.
#[inline]
const fn before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}

/// Whether patience is used up.
#[inline]
const fn exhausted(patience: u64) -> bool {
    (patience as i64) < 0
}
