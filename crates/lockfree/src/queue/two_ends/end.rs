//! An end of a queue: its lock, its place, and what it knows of the other end.

use lock_api::{Mutex, RawMutex};
use stanchion_machine::atomic::{AtomicUsize, Ordering};
use stanchion_machine::cell::UnsafeCell;

/// The longest pause of a call in vain, in transfers of a line. Measured, as is
/// [`SLOTS_A_TRANSFER`], where a thread gets some five operations done in a transfer.
const LONGEST_PAUSE: u8 = 8;

/// A pause lasts for at most one transfer of a line for so many slots of a bounded queue. In a
/// smaller one the other end would run out of values, or room, before the pause is over.
const SLOTS_A_TRANSFER: usize = 20;

/// An end of a queue.
pub(in crate::queue) struct End<L, P> {
    /// The place of the end, and what it knows. Touched by the holder of the lock.
    pub(super) place: Mutex<L, UnsafeCell<Place<P>>>,
    /// The number of values that have passed this end. Wraps. Written by the holder of the lock.
    pub(super) passed: AtomicUsize,
}

/// The place of an end, and what it knows of the other.
pub(in crate::queue) struct Place<P> {
    /// The next slot.
    pub(super) at: P,
    /// The number of values that had passed the other end when a holder last looked.
    pub(super) other: usize,
    /// The sum of both ends' numbers when the length was last asked for. Kept at the head.
    asked: usize,
    /// The number of values that had passed the other end at the last call in vain.
    in_vain: usize,
    /// The transfers of a line that the next pause lasts for.
    pause: u8,
}

impl<P> Place<P> {
    const fn new(at: P) -> Self {
        Self { at, other: 0, asked: usize::MAX, in_vain: 0, pause: 0 }
    }

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

    /// Returns how many values have passed the tail, if there is room. `all` is the most values
    /// that there can be, if there is a bound.
    #[inline]
    pub(super) fn room(
        &mut self,
        pushed: &AtomicUsize,
        popped: &AtomicUsize,
        all: Option<usize>,
    ) -> Option<usize> {
        let pushed = pushed.load(Ordering::Relaxed);
        let has_room = match all {
            None => true,
            Some(all) => self.look(popped, |popped| pushed.wrapping_sub(popped) < all),
        };
        has_room.then_some(pushed)
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

    /// Returns how many transfers of a line a call in vain lets pass before it looks again: none if
    /// the other end has not moved since the last such call. `all` is the most values that there
    /// can be, if there is a bound.
    pub(super) fn pause(&mut self, all: Option<usize>) -> u8 {
        let has_moved = core::mem::replace(&mut self.in_vain, self.other) != self.other;
        let longest = all.map_or(usize::MAX, |all| all / SLOTS_A_TRANSFER);
        if has_moved { usize::from(self.pause).min(longest) as u8 } else { 0 }
    }

    /// Learns from a `pause`: the next one is longer if more than one value passed the other end
    /// for each transfer of a line, and shorter if fewer did.
    pub(super) fn learn(&mut self, pause: u8) {
        let moved = self.other.wrapping_sub(self.in_vain);
        if moved > usize::from(pause) {
            self.pause = (2 * pause).min(LONGEST_PAUSE);
        } else if moved < usize::from(pause) {
            self.pause = pause / 2;
        }
    }

    /// Learns that a thread was at the other end at the same time: pauses may pay.
    pub(super) fn meet(&mut self) {
        self.pause = self.pause.max(1);
    }
}

impl<L: RawMutex, P> End<L, P> {
    pub(super) const fn new(lock: L, at: P) -> Self {
        let place = Mutex::from_raw(lock, UnsafeCell::new(Place::new(at)));
        Self { place, passed: AtomicUsize::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_they_pay_and_only_if_the_other_end_moves() {
        let mut place = Place::new(());
        place.other = 1;
        assert_eq!(place.pause(Some(1_000)), 0, "it has met no thread");
        place.meet();
        assert_eq!(place.pause(Some(1_000)), 0, "the other end has not moved");
        for (came, expected) in [(9, 1), (9, 2), (9, 4), (9, 8), (8, 8), (7, 8), (3, 4), (0, 2)] {
            place.other += 1;
            assert_eq!((place.pause(Some(1_000)), place.pause(Some(1_000))), (expected, 0));
            place.other += came;
            place.learn(expected);
        }
        place.other += 1;
        assert_eq!(place.pause(Some(1_000)), 1);
        place.learn(1);
        assert_eq!(place.pause, 0);
        place.meet();
        place.other += 1;
        assert_eq!(place.pause(Some(SLOTS_A_TRANSFER - 1)), 0, "the ring is small");
        assert_eq!([5, 5, 6, 5].map(|sum| place.asks_again(sum)), [false, true, false, false]);
    }
}
