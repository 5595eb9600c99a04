//! A queue with a lock at each end, over slots that a ring or a list of segments gives.
//!
//! Why locks, where there are queues without one: each operation of such a queue moves a word that
//! all threads of its end move. With two threads a pair of operations pays for two transfers of a
//! line between processors. A lock that a running thread may take before its turn (*barging*) lets
//! one thread do hundreds of operations while the lines stay in its cache. A push and a pop have
//! two locked instructions together, as many as the best queue without a lock.
//!
//! Why one for each end: where some threads only push and others only pop, both do hundreds of
//! operations at the same time. An end fetches the other's line only when the values, or the room,
//! that it knows of are used up.
//!
//! The price: the threads of an end wait for one that stops with its lock, and others may pass a
//! waiting thread over for milliseconds.
//!
//! ```text
//!          head            tail
//!           ▼               ▼
//! ┌───┬───┬───┬───┬───┬───┬───┐      each end has a line: its lock, its place, the number of
//! │   │   │ A │ B │ C │ D │   │      values that have passed it, and that of the other end
//! └───┴───┴───┴───┴───┴───┴───┘      when it last looked
//! ```
//!
//! The tail of a queue without a bound never looks at the head. There [`Slots`] alone sees to it
//! that a slot has been emptied before it is used again.
//!
//! # Invariants
//!
//! 1. The `place` of an end is touched, and its `passed` is written, only by the holder of its
//!    lock.
//! 2. As many slots have values as values have passed the tail and not the head: those from the
//!    head's on, in the order of [`Slots`]. The others have none.
//! 3. What `place` knows of the other end may be old, and is never ahead of it. So the holder of
//!    the head's lock finds only slots with a value, and the holder of the tail's only slots
//!    without one. Without a bound the latter is a promise of [`Slots`].
//!
//! # Orderings
//!
//! - **Push: store the tail's `passed`**: Release. The partner is the Acquire load of the head's
//!   holder: the value is in its slot.
//! - **Pop: store the head's `passed`**: Release. The partner is the Acquire load of the tail's
//!   holder, if there is a bound: the value has been taken out of its slot.
//!
//! An end reads its own `passed` Relaxed: the lock orders that.
//!
//! The answer of a call that finds nothing, or no room, must hold for all calls that had returned
//! before it began. But the other end's store may still be in the store buffer of its processor,
//! and a later load of the same thread may pass it. A thread that pushes and looks for sleepers,
//! and one that announces its sleep and pops, would then miss each other
//! (`tests/two_ends_litmus.rs`). So such a call holds both locks at its last look, as `len` does. A
//! store that is visible at once would cost a locked instruction in each push and each pop.
//!
//! # Both locks
//!
//! With one lock a thread only tries for the other, a few times. So no two calls wait for each
//! other, and a thread that stops with one lock does not stop calls that need only the other.
//!
//! # Ends that meet
//!
//! Where one end waits for what the other does, each value would pay for the lines. So a call in
//! vain lets the other end go ahead for a while, if that has moved since the last such call, and
//! then has several values to take, or slots to fill. How long the pause is, each end learns: up to
//! eight transfers of a line, while they bring more than a value each, and less in a small ring. If
//! no call has found the other end's lock held, there is no pause.
//!
//! Source: two locks are Michael and Scott's (see [`TwoLockQueue`](super::TwoLockQueue)). That each
//! end remembers where it last saw the other is usual in queues of one producer and one consumer
//! (Lee, Bu and Chandranmenon, "A lock-free, cache-efficient shared ring buffer for multi-core
//! architectures", ANCS 2009).

mod end;
#[cfg(test)]
mod tests;

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use lock_api::{MutexGuard, RawMutex};
use stanchion_machine::atomic::{AtomicUsize, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::{topology, wait};

use self::end::{End, Place};
use crate::dropping::drop_each;

/// The tries for the lock of the other end, with a transfer of a line between two.
const TRIES: u32 = 10;

/// A slot, with or without a value.
pub(super) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The slots of a queue, in an order that both ends follow.
///
/// # Safety
///
/// - The slots that the head gets one after the other are those that the tail got, in that order.
/// - The slot that the tail gets has no value. If there is no bound, the pop of the value that was
///   in it happens before.
/// - A slot stays where it is until its end has moved on and asks for the next one.
/// - Both ends may call the methods at the same time, each with its own place.
pub(super) unsafe trait Slots {
    /// The type of the values.
    type Value;

    /// The place of an end: its next slot.
    type Place;

    /// The place of both ends at first.
    const START: Self::Place;

    /// Returns the most values that there can be, or `None` if only memory limits them.
    fn capacity(&self) -> Option<usize>;

    /// Returns the slot of the tail. Makes it, if there is none yet.
    ///
    /// # Safety
    ///
    /// The caller holds the tail's lock, or is alone. `place` is that of the tail of the queue over
    /// these slots. There is room; if there is a bound, the pop that made it happens before.
    unsafe fn at_tail(&self, place: &mut Self::Place) -> &Slot<Self::Value>;

    /// Returns the slot of the head.
    ///
    /// # Safety
    ///
    /// The caller holds the head's lock, or is alone. `place` is that of the head of the queue over
    /// these slots. The slot has a value, and the push of that value happens before.
    unsafe fn at_head(&self, place: &mut Self::Place) -> &Slot<Self::Value>;

    /// Moves `place` to the next slot.
    ///
    /// # Safety
    ///
    /// The last call with `place` was one of `at_tail` or `at_head`.
    unsafe fn advance(&self, place: &mut Self::Place);
}

/// A queue over the slots `S`, with a lock `L` at each end.
pub(super) struct TwoEnds<S: Slots, L: RawMutex> {
    /// The end where values come out.
    head: CachePadded<End<L, S::Place>>,
    /// The end where values go in.
    tail: CachePadded<End<L, S::Place>>,
    /// The slots. Those between the ends have values (Invariant 2).
    slots: S,
}

/// The name of an end.
#[derive(Clone, Copy)]
enum Which {
    /// Where values come out.
    Head,
    /// Where values go in.
    Tail,
}

/// The lock of an end, held.
pub(super) type Held<'q, S, L> = MutexGuard<'q, L, UnsafeCell<Place<<S as Slots>::Place>>>;

/// The slot that the holder of an end fills or empties next. A `put` or `take` must follow, since
/// the end's place is already beyond it.
#[must_use]
pub(super) struct Turn<'q, T> {
    /// The slot.
    slot: &'q Slot<T>,
    /// The number of values that will have passed the end.
    passed: usize,
}

/// The lock of an end, held, and the end's turn.
type HeldWithTurn<'q, S, L> = (Held<'q, S, L>, Turn<'q, <S as Slots>::Value>);

/// Returns whether another thread may get on while this one pauses.
fn spins() -> bool {
    wait::SPINS && topology::usable() > 1
}

/// Repeats `attempt` a few times, until it returns something.
fn a_few_times<R>(attempt: impl FnMut() -> Option<R>) -> Option<R> {
    let mut tries = if spins() { TRIES } else { 1 };
    let again = || {
        tries -= 1;
        tries > 0
    };
    let transfer = wait::transfers(1);
    wait::retry_for(attempt, transfer..transfer, again)
}

// SAFETY: a value goes from the thread that pushes it to the one that pops it. `peek` and `pop_if`
// lend it to one thread at a time, the holder of the head (Invariant 3). The places are used under
// the locks (Invariant 1), and the slots by both ends, as they promise to bear.
unsafe impl<S: Slots<Value: Send, Place: Send> + Send, L: RawMutex + Sync> Sync for TwoEnds<S, L> {}

impl<S: Slots, L: RawMutex> Drop for TwoEnds<S, L> {
    fn drop(&mut self) {
        drop_each(|| self.pop_exclusive());
    }
}

impl<S: Slots, L: RawMutex> TwoEnds<S, L> {
    /// Returns an empty queue over `slots`, with a lock for each end. Both must be free.
    pub(super) const fn new(slots: S, head: L, tail: L) -> Self {
        Self {
            head: CachePadded::new(End::new(head, S::START)),
            tail: CachePadded::new(End::new(tail, S::START)),
            slots,
        }
    }

    /// Returns the slots.
    pub(super) const fn slots(&self) -> &S {
        &self.slots
    }

    /// Returns the slots, to the only owner.
    #[cfg(test)]
    pub(super) const fn slots_mut(&mut self) -> &mut S {
        &mut self.slots
    }

    /// Locks the tail, and returns the lock and a slot to put a value in, if there is room.
    #[inline]
    pub(super) fn tail(&self) -> Option<HeldWithTurn<'_, S, L>> {
        self.lock(Which::Tail, |tail| self.turn_of_tail(tail))
    }

    /// Locks the tail as [`tail`](Self::tail) does, but gives up at the first look for room.
    #[inline]
    pub(super) fn tail_at_once(&self) -> Option<HeldWithTurn<'_, S, L>> {
        let tail = self.tail.place.lock();
        let turn = self.turn_of_tail(&tail)?;
        Some((tail, turn))
    }

    /// Locks the head, and returns the lock and a slot to take a value out of, if there is one.
    #[inline]
    pub(super) fn head(&self) -> Option<HeldWithTurn<'_, S, L>> {
        self.lock(Which::Head, |head| self.turn_of_head(head))
    }

    /// Locks both ends, the tail first in the result.
    pub(super) fn lock_both(&self) -> [Held<'_, S, L>; 2] {
        loop {
            let head = self.head.place.lock();
            if let Some(tail) = a_few_times(|| self.tail.place.try_lock()) {
                return [tail, head];
            }
            // Pops go on while a thread stops with the lock of the tail.
            drop(head);
            drop(self.tail.place.lock());
        }
    }

    /// Puts `value` into the slot of `turn`.
    ///
    /// # Safety
    ///
    /// The caller holds the tail's lock, or is alone, and `turn` is the tail's.
    #[inline]
    pub(super) unsafe fn put(&self, turn: Turn<'_, S::Value>, value: S::Value) {
        turn.slot.with_mut(|slot| {
            // SAFETY: no other thread touches the slot until the tail has passed it (Invariant 3).
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        // Release: the value is in. The partner is the Acquire of `Place::look`.
        self.tail.passed.store(turn.passed, Ordering::Release);
    }

    /// Takes the value out of the slot of `turn`.
    ///
    /// # Safety
    ///
    /// The caller holds the head's lock, or is alone, and `turn` is the head's.
    #[inline]
    pub(super) unsafe fn take(&self, turn: Turn<'_, S::Value>) -> S::Value {
        let value = turn.slot.with(|slot| {
            // SAFETY: no other thread touches the slot until the head has passed it (Invariant 3).
            let slot = unsafe { &*slot };
            // SAFETY: it has a value (Invariant 3), which is taken once: the head passes it now.
            unsafe { slot.assume_init_read() }
        });
        // Release: the value is out. The partner is the Acquire of `Place::look`.
        self.head.passed.store(turn.passed, Ordering::Release);
        value
    }

    /// Calls `look` with the oldest value, under the lock of the head.
    pub(super) fn peek<R>(&self, look: impl FnOnce(&S::Value) -> R) -> Option<R> {
        let (_head, oldest) = self.lock(Which::Head, |head| self.oldest(head))?;
        Some(Self::with_value(oldest, look))
    }

    /// Takes the oldest value, if `predicate` is true of it. Calls `predicate` under the lock of
    /// the head.
    pub(super) fn pop_if(&self, predicate: impl FnOnce(&S::Value) -> bool) -> Option<S::Value> {
        let (head, oldest) = self.lock(Which::Head, |head| self.oldest(head))?;
        if !Self::with_value(oldest, predicate) {
            return None;
        }
        let turn = self.turn_of_head(&head)?;
        // SAFETY: the lock is held, and the turn is the head's.
        Some(unsafe { self.take(turn) })
    }

    /// Returns how many values there are. Takes both locks.
    pub(super) fn len(&self) -> usize {
        let [tail, head] = self.lock_both();
        let [pushed, popped] = self.passed();
        // SAFETY: the lock is held (Invariant 1).
        let again =
            head.with_mut(|place| unsafe { (*place).asks_again(pushed.wrapping_add(popped)) });
        drop((tail, head));
        if again {
            wait::delay(wait::transfers(1));
        }
        pushed.wrapping_sub(popped)
    }

    /// Returns how many values there are, or `None` if a lock is held.
    pub(super) fn try_len(&self) -> Option<usize> {
        let _tail = self.tail.place.try_lock()?;
        let _head = self.head.place.try_lock()?;
        let [pushed, popped] = self.passed();
        Some(pushed.wrapping_sub(popped))
    }

    /// Returns whether there is no value. Takes the head's lock, and the tail's if it finds none.
    pub(super) fn is_empty(&self) -> bool {
        self.lock(Which::Head, |head| self.oldest(head)).is_none()
    }

    /// Returns whether there is no room. Takes the tail's lock, and the head's if it finds none.
    pub(super) fn is_full(&self) -> bool {
        self.lock(Which::Tail, |tail| self.room(tail)).is_none()
    }

    /// Returns a slot to put a value in, if there is room, to the holder of the tail's lock.
    #[inline]
    pub(super) fn turn_of_tail(&self, tail: &Held<'_, S, L>) -> Option<Turn<'_, S::Value>> {
        tail.with_mut(|place| {
            // SAFETY: the lock is held (Invariant 1).
            let place = unsafe { &mut *place };
            // SAFETY: as above.
            unsafe { Turn::of_tail(&self.slots, place, &self.tail.passed, &self.head.passed) }
        })
    }

    /// Returns a slot to take a value out of, if there is one, to the holder of the head's lock.
    #[inline]
    pub(super) fn turn_of_head(&self, head: &Held<'_, S, L>) -> Option<Turn<'_, S::Value>> {
        head.with_mut(|place| {
            // SAFETY: the lock is held (Invariant 1).
            let place = unsafe { &mut *place };
            // SAFETY: as above.
            unsafe { Turn::of_head(&self.slots, place, &self.head.passed, &self.tail.passed) }
        })
    }

    /// Puts `value` at the end, if there is room, for the only owner.
    pub(super) fn push_exclusive(&mut self, value: S::Value) -> Result<(), S::Value> {
        let End { place, passed } = &mut *self.tail;
        let place = place.get_mut().get_mut();
        // SAFETY: the owner is alone.
        let turn = unsafe { Turn::of_tail(&self.slots, place, passed, &self.head.passed) };
        let Some(turn) = turn else { return Err(value) };
        // SAFETY: as above, and the turn is the tail's.
        unsafe { self.put(turn, value) };
        Ok(())
    }

    /// Takes the oldest value, for the only owner.
    pub(super) fn pop_exclusive(&mut self) -> Option<S::Value> {
        let End { place, passed } = &mut *self.head;
        let place = place.get_mut().get_mut();
        // SAFETY: the owner is alone.
        let turn = unsafe { Turn::of_head(&self.slots, place, passed, &self.tail.passed) };
        // SAFETY: as above, and the turn is the head's.
        turn.map(|turn| unsafe { self.take(turn) })
    }

    /// Returns the oldest value, for the only owner.
    pub(super) fn first_mut(&mut self) -> Option<&mut S::Value> {
        let End { place, passed } = &mut *self.head;
        let place = place.get_mut().get_mut();
        place.value(passed, &self.tail.passed)?;
        // SAFETY: the owner is alone, and there is a value.
        let slot = unsafe { self.slots.at_head(&mut place.at) };
        Some(slot.with_mut(|value| {
            // SAFETY: the owner is alone.
            let value = unsafe { &mut *value };
            // SAFETY: the slot has a value (Invariant 3).
            unsafe { value.assume_init_mut() }
        }))
    }

    /// Returns how many values have passed the tail and the head, to the holder of both locks.
    fn passed(&self) -> [usize; 2] {
        [&self.tail, &self.head].map(|end| end.passed.load(Ordering::Relaxed))
    }

    #[inline]
    fn end(&self, end: Which) -> &End<L, S::Place> {
        match end {
            Which::Head => &self.head,
            Which::Tail => &self.tail,
        }
    }

    /// Locks an end, and returns its lock with what `ask` returns, if that is something.
    #[inline]
    fn lock<'q, R>(
        &'q self,
        end: Which,
        ask: impl Fn(&Held<'q, S, L>) -> Option<R>,
    ) -> Option<(Held<'q, S, L>, R)> {
        let held = self.end(end).place.lock();
        match ask(&held) {
            Some(answer) => Some((held, answer)),
            None => self.ask_again(held, end, ask),
        }
    }

    /// Asks until there is an answer, or none with both locks: what has been asked without the
    /// other end's lock may be too old.
    #[cold]
    fn ask_again<'q, R>(
        &'q self,
        mut held: Held<'q, S, L>,
        end: Which,
        ask: impl Fn(&Held<'q, S, L>) -> Option<R>,
    ) -> Option<(Held<'q, S, L>, R)> {
        let other = match end {
            Which::Head => &self.tail,
            Which::Tail => &self.head,
        };
        // SAFETY: the lock is held (Invariant 1).
        let pause = held.with_mut(|place| unsafe { (*place).pause(self.slots.capacity()) });
        if pause > 0 && spins() {
            wait::delay(wait::transfers(pause.into()));
            let answer = ask(&held);
            // SAFETY: as above.
            held.with_mut(|place| unsafe { (*place).learn(pause) });
            if let Some(answer) = answer {
                return Some((held, answer));
            }
        }
        loop {
            let mut has_met = false;
            // A holder of the other end may be there for the same reason, and know less.
            let settled = a_few_times(|| match ask(&held) {
                None => {
                    let Some(_other) = other.place.try_lock() else {
                        has_met = true;
                        return None;
                    };
                    Some(ask(&held))
                }
                answer => Some(answer),
            });
            if has_met {
                // SAFETY: as above.
                held.with_mut(|place| unsafe { (*place).meet() });
            }
            if let Some(answer) = settled {
                return answer.map(|answer| (held, answer));
            }
            drop(held);
            drop(other.place.lock());
            held = self.end(end).place.lock();
        }
    }

    fn room(&self, tail: &Held<'_, S, L>) -> Option<usize> {
        let (pushed, popped, all) = (&self.tail.passed, &self.head.passed, self.slots.capacity());
        // SAFETY: the lock is held (Invariant 1).
        tail.with_mut(|place| unsafe { (*place).room(pushed, popped, all) })
    }

    /// Returns the slot of the oldest value, if there is one, to the holder of the head's lock.
    fn oldest(&self, head: &Held<'_, S, L>) -> Option<&Slot<S::Value>> {
        let (popped, pushed) = (&self.head.passed, &self.tail.passed);
        head.with_mut(|place| {
            // SAFETY: the lock is held (Invariant 1).
            let place = unsafe { &mut *place };
            place.value(popped, pushed)?;
            // SAFETY: as above; there is a value, which was read with Acquire.
            Some(unsafe { self.slots.at_head(&mut place.at) })
        })
    }

    /// Calls `look` with the value in `oldest`, for the holder of the head's lock.
    fn with_value<R>(oldest: &Slot<S::Value>, look: impl FnOnce(&S::Value) -> R) -> R {
        oldest.with(|slot| {
            // SAFETY: no other thread touches the slot while the lock is held (Invariant 3).
            let slot = unsafe { &*slot };
            // SAFETY: it has a value (Invariant 3).
            look(unsafe { slot.assume_init_ref() })
        })
    }
}

impl<'q, T> Turn<'q, T> {
    /// Returns the tail's turn, if there is room, after which `place` is at the next slot. `pushed`
    /// counts the values that have passed the tail, `popped` those that have passed the head.
    ///
    /// # Safety
    ///
    /// The caller holds the tail's lock, or is alone. All arguments are of one queue, and `place`
    /// is the tail's.
    #[inline]
    unsafe fn of_tail<S: Slots<Value = T>>(
        slots: &'q S,
        place: &mut Place<S::Place>,
        pushed: &AtomicUsize,
        popped: &AtomicUsize,
    ) -> Option<Self> {
        let pushed = place.room(pushed, popped, slots.capacity())?;
        // SAFETY: by the caller's promise; and there is room.
        let slot = unsafe { slots.at_tail(&mut place.at) };
        // SAFETY: `place` was used last in that call.
        unsafe { slots.advance(&mut place.at) };
        Some(Self { slot, passed: pushed.wrapping_add(1) })
    }

    /// Returns the head's turn, if there is a value, after which `place` is at the next slot.
    /// `popped` counts the values that have passed the head, `pushed` those that have passed the
    /// tail.
    ///
    /// # Safety
    ///
    /// The caller holds the head's lock, or is alone. All arguments are of one queue, and `place`
    /// is the head's.
    #[inline]
    unsafe fn of_head<S: Slots<Value = T>>(
        slots: &'q S,
        place: &mut Place<S::Place>,
        popped: &AtomicUsize,
        pushed: &AtomicUsize,
    ) -> Option<Self> {
        let popped = place.value(popped, pushed)?;
        // SAFETY: by the caller's promise; and there is a value, which was read with Acquire.
        let slot = unsafe { slots.at_head(&mut place.at) };
        // SAFETY: `place` was used last in that call.
        unsafe { slots.advance(&mut place.at) };
        Some(Self { slot, passed: popped.wrapping_add(1) })
    }
}
