//! An end of a ring: its lock, its slot, and what it knows of the other end.

use crossbeam_utils::CachePadded;
use lock_api::{Mutex, MutexGuard, RawMutex};
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

/// The longest pause of a call in vain, in transfers of a line. Measured, as is
/// [`SLOTS_A_TRANSFER`], where a thread gets some five operations done in a transfer.
const LONGEST_PAUSE: u64 = 8;

/// A pause lasts for at most one transfer of a line for so many slots: a busy end fills or empties
/// a smaller ring in less time, and waits then.
const SLOTS_A_TRANSFER: u64 = 20;

/// An end of a ring.
pub(super) struct End<L> {
    /// Where the end is. Touched by the holder of the lock.
    pub(super) place: Mutex<L, UnsafeCell<Place>>,
    /// The number of values that have passed this end. Wraps. Written by the holder of the lock.
    pub(super) passed: AtomicUsize,
}

/// The lock of an end, held.
pub(super) type Held<'r, L> = MutexGuard<'r, L, UnsafeCell<Place>>;

/// The place of an end.
pub(super) struct Place {
    /// The index of the next slot.
    pub(super) slot: usize,
    /// The number of values that had passed the other end when a holder last looked.
    pub(super) other: usize,
    /// The sum of both ends' numbers when the length was last asked for. Kept at the head.
    asked: usize,
    /// The number of values that had passed the other end at the last call in vain.
    in_vain: usize,
    /// The transfers of a line that the next pause lasts for.
    pause: u64,
}

/// A slot that the holder of an end works on. Then the end passes it.
pub(super) struct Turn {
    /// The index of the slot.
    pub(super) slot: usize,
    /// The number of values that will have passed the end.
    pub(super) passed: usize,
}

impl Place {
    /// Returns whether `is_enough` is true of the other end's number: of the known one, or else of
    /// today's.
    #[inline]
    fn look(&mut self, other: &AtomicUsize, is_enough: impl Fn(usize) -> bool) -> bool {
        is_enough(self.other) || {
            // Acquire: what passed the other end is in its slot, or out of it. The partner is the
            // Release of `put` and of `take`.
            self.other = other.load(Ordering::Acquire);
            is_enough(self.other)
        }
    }

    /// Returns how many values have passed the tail, if the ring of `all` slots has room.
    #[inline]
    pub(super) fn room(
        &mut self,
        pushed: &AtomicUsize,
        popped: &AtomicUsize,
        all: usize,
    ) -> Option<usize> {
        let pushed = pushed.load(Ordering::Relaxed);
        self.look(popped, |popped| pushed.wrapping_sub(popped) < all).then_some(pushed)
    }

    /// Returns how many values have passed the head, if there is one that has not.
    #[inline]
    pub(super) fn value(&mut self, popped: &AtomicUsize, pushed: &AtomicUsize) -> Option<usize> {
        let popped = popped.load(Ordering::Relaxed);
        self.look(pushed, |pushed| pushed != popped).then_some(popped)
    }

    /// Returns whether the length was asked for when both ends' numbers had the same `sum`.
    pub(super) const fn asks_again(&mut self, sum: usize) -> bool {
        core::mem::replace(&mut self.asked, sum) == sum
    }

    /// Returns how many transfers of a line a call in vain lets pass before it looks again, in a
    /// ring of `all` slots: none if the other end has not moved since the last such call.
    pub(super) fn pause(&mut self, all: usize) -> u64 {
        let has_moved = core::mem::replace(&mut self.in_vain, self.other) != self.other;
        if has_moved { self.pause.min(all as u64 / SLOTS_A_TRANSFER) } else { 0 }
    }

    /// Learns from a `pause`: the next one is longer if more than one value passed the other end
    /// for each transfer of a line, and shorter if fewer did.
    pub(super) fn learn(&mut self, pause: u64) {
        let moved = self.other.wrapping_sub(self.in_vain) as u64;
        if moved > pause {
            self.pause = (2 * pause).min(LONGEST_PAUSE);
        } else if moved < pause {
            self.pause = pause / 2;
        }
    }

    /// Learns that a thread was at the other end at the same time: pauses may pay.
    pub(super) fn meet(&mut self) {
        self.pause = self.pause.max(1);
    }

    /// Leaves the slot, after `passed` values.
    #[inline]
    pub(super) fn turn(&mut self, passed: usize, all: usize) -> Turn {
        let turn = Turn { slot: self.slot, passed: passed.wrapping_add(1) };
        let next = self.slot + 1;
        self.slot = if next < all { next } else { 0 };
        turn
    }
}

impl<L: RawMutex> End<L> {
    pub(super) fn new(lock: L) -> CachePadded<Self> {
        let place = Mutex::from_raw(
            lock,
            UnsafeCell::new(Place { slot: 0, other: 0, asked: usize::MAX, in_vain: 0, pause: 0 }),
        );
        CachePadded::new(Self { place, passed: AtomicUsize::fresh(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_they_pay_and_only_if_the_other_end_moves() {
        let mut place = Place { slot: 0, other: 0, asked: 0, in_vain: 0, pause: 0 };
        place.other = 1;
        assert_eq!(place.pause(1_000), 0, "it has met no thread");
        place.meet();
        assert_eq!(place.pause(1_000), 0, "the other end has not moved");
        for (came, expected) in [(9, 1), (9, 2), (9, 4), (9, 8), (8, 8), (7, 8), (3, 4), (0, 2)] {
            place.other += 1;
            assert_eq!((place.pause(1_000), place.pause(1_000)), (expected, 0));
            place.other += came;
            place.learn(expected);
        }
        place.other += 1;
        assert_eq!(place.pause(1_000), 1);
        place.learn(1);
        assert_eq!(place.pause, 0);
        place.meet();
        place.other += 1;
        assert_eq!(place.pause(SLOTS_A_TRANSFER as usize - 1), 0, "the ring is small");
        assert_eq!([5, 5, 6, 5].map(|sum| place.asks_again(sum)), [false, true, false, false]);
    }
}
