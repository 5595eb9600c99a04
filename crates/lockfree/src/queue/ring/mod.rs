//! A bounded queue with a lock at each end: the default choice among the bounded queues.
//!
//! Why locks, where there are rings without one: each operation of such a ring moves a word that
//! all threads of its end move. With two threads a pair of operations pays for two transfers of a
//! line between processors. A lock that a running thread may take before its turn (*barging*) lets
//! one thread do hundreds of operations while the lines stay in its cache. A push and a pop have
//! two locked instructions together, as many as the best ring without a lock.
//!
//! Why one for each end: where some threads only push and others only pop, both do hundreds of
//! operations at the same time. An end fetches the other's line only when the values, or the room,
//! that it knows of are used up. Over 60 random loads, half of them of this kind, the best other
//! queue has 0.94 times the throughput in the mean, and 1.6 times at worst (AMD EPYC,
//! `cargo study regret --random 60 --seed 20261207 --family bounded-queues --quick`).
//!
//! The price: the threads of an end wait for one that stops with its lock, and one may be passed
//! over for longer. [`NikolaevQueue`](super::NikolaevQueue) is for programs that cannot have that.
//!
//! ```text
//!          head            tail
//!           ▼               ▼
//! ┌───┬───┬───┬───┬───┬───┬───┐      each end has a line: its lock, its slot, the number of
//! │   │   │ A │ B │ C │ D │   │      values that have passed it, and that of the other end
//! └───┴───┴───┴───┴───┴───┴───┘      when it last looked
//! ```
//!
//! # Invariants
//!
//! 1. The `place` of an end is touched, and its `passed` is written, only by the holder of its
//!    lock.
//! 2. As many slots have values as values have passed the tail and not the head: those from the
//!    head's on, going round. The others have none.
//! 3. What `place` knows of the other end may be old, and is never ahead of it. So the holder of
//!    the tail's lock finds only slots without a value, and the holder of the head's only slots
//!    with one.
//!
//! # Orderings
//!
//! - **Push: store the tail's `passed`**: Release. The partner is the Acquire load of the head's
//!   holder: the value is in its slot.
//! - **Pop: store the head's `passed`**: Release. The partner is the Acquire load of the tail's
//!   holder: the value has been taken out of its slot.
//!
//! An end reads its own `passed` Relaxed: the lock orders that.
//!
//! The answer of a call that finds nothing, or no room, must hold for all calls that had returned
//! before it began. But the other end's store may still be in the store buffer of its processor,
//! and a later load of the same thread may pass it. A thread that pushes and looks for sleepers,
//! and one that announces its sleep and pops, would then miss each other (`tests/ring_litmus.rs`).
//! So such a call holds both locks at its last look, as `len` does. A store that is visible at once
//! would cost a locked instruction in each push and each pop.
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
//! Source: the ring is common knowledge, and two locks are Michael and Scott's (see
//! [`TwoLockQueue`](super::TwoLockQueue)). That each end remembers where it last saw the other is
//! usual in queues of one producer and one consumer (Lee, Bu and Chandranmenon, "A lock-free,
//! cache-efficient shared ring buffer for multi-core architectures", ANCS 2009).

mod end;

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use lock_api::RawMutex;
use stanchion_machine::atomic::Ordering;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::{topology, wait};

use self::end::{End, Held, Turn};
use super::Full;
use crate::Progress;
use crate::barging::Barging;
use crate::dropping::drop_each;

/// The tries for the lock of the other end, with a transfer of a line between two.
const TRIES: u32 = 10;

/// A bounded queue of `T` with a lock `L` at each end: any `lock_api` raw mutex, by default the one
/// for very short sections.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): a thread that stops with a lock stops that end |
/// | cost | the lock's; by default two locked instructions for a push and a pop |
/// | a call in vain | takes both locks |
/// | memory | the slots, allocated when it is made |
/// | fairness | the lock's: by default none, a waiter may be passed over for milliseconds |
///
/// ```
/// use stanchion_lockfree::queue::LockedRing;
///
/// let ring = LockedRing::with_capacity(2);
/// assert!(ring.try_push("first").is_ok());
/// assert!(ring.try_push("second").is_ok());
/// assert_eq!(ring.try_push("third").unwrap_err().0, "third");
/// assert_eq!(ring.pop(), Some("first"));
/// assert_eq!(ring.len(), 1);
/// ```
///
/// With locks that let waiters sleep, and pass over no waiter for much longer than 10 ms:
///
/// ```
/// use stanchion_competitive::RawPolicyMutex;
/// use stanchion_lockfree::queue::LockedRing;
///
/// let (head, tail) = (RawPolicyMutex::new(), RawPolicyMutex::new());
/// let ring = LockedRing::with_capacity_and_locks(8, head, tail);
/// assert!(ring.try_push(1).is_ok());
/// ```
pub struct LockedRing<T, L: RawMutex = Barging> {
    /// The end where values come out.
    head: CachePadded<End<L>>,
    /// The end where values go in.
    tail: CachePadded<End<L>>,
    /// The slots. Those between the ends have values (Invariant 2).
    slots: Box<[Slot<T>]>,
}

/// The name of an end.
#[derive(Clone, Copy)]
enum Which {
    /// Where values come out.
    Head,
    /// Where values go in.
    Tail,
}

/// A slot, with or without a value.
type Slot<T> = UnsafeCell<MaybeUninit<T>>;

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
// lend it to one thread at a time, the holder of the head (Invariant 3).
unsafe impl<T: Send, L: RawMutex + Sync> Sync for LockedRing<T, L> {}

impl<T, L: RawMutex> Drop for LockedRing<T, L> {
    fn drop(&mut self) {
        drop_each(|| self.pop_exclusive());
    }
}

impl<T> LockedRing<T> {
    /// Returns an empty queue for at most `capacity` values, under [`Barging`].
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or more than memory can hold.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_locks(capacity, RawMutex::INIT, RawMutex::INIT)
    }
}

impl<T, L: RawMutex> LockedRing<T, L> {
    /// Returns an empty queue for at most `capacity` values, with a lock for each end. Both must be
    /// free.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or more than memory can hold.
    #[must_use]
    pub fn with_capacity_and_locks(capacity: usize, head: L, tail: L) -> Self {
        assert!(capacity > 0, "a LockedRing of capacity 0 could hold nothing: ask for 1 at least");
        assert!(capacity <= isize::MAX as usize, "no ring has room for {capacity} values");
        let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Self { head: End::new(head), tail: End::new(tail), slots }
    }

    /// Puts `value` at the end.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if there were as many as the capacity.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let Some((_tail, turn)) = self.lock(Which::Tail, Self::turn_of_tail) else {
            return Err(Full(value));
        };
        self.put(&turn, value);
        Ok(())
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let (_head, turn) = self.lock(Which::Head, Self::turn_of_head)?;
        Some(self.take(&turn))
    }

    /// Puts `value` at the end. If the queue is full, takes the oldest value out for it, in the
    /// same step, and returns that.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let last_two = LockedRing::with_capacity(2);
    /// assert_eq!(last_two.force_push(1), None);
    /// assert_eq!(last_two.force_push(2), None);
    /// assert_eq!(last_two.force_push(3), Some(1));
    /// assert!(last_two.into_iter().eq([2, 3]));
    /// ```
    pub fn force_push(&self, value: T) -> Option<T> {
        let held = self.tail.place.lock();
        if let Some(turn) = self.turn_of_tail(&held) {
            self.put(&turn, value);
            return None;
        }
        drop(held);
        let [tail, head] = self.lock_both();
        let mut oldest = None;
        // Twice at most: the turn of the head makes room.
        loop {
            if let Some(turn) = self.turn_of_tail(&tail) {
                self.put(&turn, value);
                return oldest;
            }
            oldest = self.turn_of_head(&head).map(|turn| self.take(&turn));
        }
    }

    /// Calls `look` with the oldest value, under the lock of the head: a `look` that uses the queue
    /// waits for itself.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let ring = LockedRing::with_capacity(1);
    /// assert!(ring.try_push(5).is_ok());
    /// assert_eq!(ring.peek(|oldest| *oldest), Some(5));
    /// ```
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let (_head, oldest) = self.lock(Which::Head, Self::oldest)?;
        Some(self.with_value(oldest, look))
    }

    /// Takes the oldest value, if `predicate` is true of it. Calls `predicate` under the lock of
    /// the head: a `predicate` that uses the queue waits for itself, and one that panics takes
    /// nothing.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let ring = LockedRing::with_capacity(1);
    /// assert!(ring.try_push(5).is_ok());
    /// assert_eq!(ring.pop_if(|oldest| oldest % 2 == 0), None);
    /// assert_eq!(ring.pop_if(|oldest| oldest % 2 == 1), Some(5));
    /// ```
    pub fn pop_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        let (head, oldest) = self.lock(Which::Head, Self::oldest)?;
        if !self.with_value(oldest, predicate) {
            return None;
        }
        let turn = self.turn_of_head(&head)?;
        Some(self.take(&turn))
    }

    /// Returns how many values there are. Takes both locks.
    ///
    /// A call that comes before anything has changed since another one lets a transfer of a line
    /// pass: threads that ask again and again would keep the others out. Under fair locks that have
    /// waiters all the time, at both ends, it goes on for as long.
    #[must_use]
    pub fn len(&self) -> usize {
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

    /// Returns whether there is no value. Takes the head's lock, and the tail's if there is none.
    ///
    /// The answer is in one order with all pushes and pops, also for a thread that writes something
    /// else first and looks then: a thread may announce in a flag that it is about to sleep, find
    /// the ring empty, and sleep. If the other thread pushes first and reads the flag then, one of
    /// the two sees what the other has done. So it is with a push or a pop that fails.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let ring = LockedRing::with_capacity(1);
    /// assert!(ring.is_empty());
    /// assert!(ring.try_push(7).is_ok());
    /// assert!(!ring.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock(Which::Head, Self::oldest).is_none()
    }

    /// Returns whether there are as many values as the capacity. Takes the tail's lock, and the
    /// head's if there are.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lock(Which::Tail, Self::room).is_none()
    }

    /// Returns the most that it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns how many values there are, or `None` if a lock is held.
    fn try_len(&self) -> Option<usize> {
        let _tail = self.tail.place.try_lock()?;
        let _head = self.head.place.try_lock()?;
        let [pushed, popped] = self.passed();
        Some(pushed.wrapping_sub(popped))
    }

    /// Returns how many values have passed the tail and the head, to the holder of both locks.
    fn passed(&self) -> [usize; 2] {
        [&self.tail, &self.head].map(|end| end.passed.load(Ordering::Relaxed))
    }

    #[inline]
    fn end(&self, end: Which) -> &End<L> {
        match end {
            Which::Head => &self.head,
            Which::Tail => &self.tail,
        }
    }

    /// Locks an end, and returns its lock with what `ask` returns, if that is something.
    #[inline]
    fn lock<'r, R>(
        &'r self,
        end: Which,
        ask: impl Fn(&Self, &Held<'r, L>) -> Option<R>,
    ) -> Option<(Held<'r, L>, R)> {
        let held = self.end(end).place.lock();
        match ask(self, &held) {
            Some(answer) => Some((held, answer)),
            None => self.ask_again(held, end, ask),
        }
    }

    /// Asks until there is an answer, or none with both locks: what has been asked without the
    /// other end's lock may be too old.
    #[cold]
    fn ask_again<'r, R>(
        &'r self,
        mut held: Held<'r, L>,
        end: Which,
        ask: impl Fn(&Self, &Held<'r, L>) -> Option<R>,
    ) -> Option<(Held<'r, L>, R)> {
        let other = match end {
            Which::Head => &self.tail,
            Which::Tail => &self.head,
        };
        // SAFETY: the lock is held (Invariant 1).
        let pause = held.with_mut(|place| unsafe { (*place).pause(self.capacity()) });
        if pause > 0 && spins() {
            wait::delay(wait::transfers(pause));
            let answer = ask(self, &held);
            // SAFETY: as above.
            held.with_mut(|place| unsafe { (*place).learn(pause) });
            if let Some(answer) = answer {
                return Some((held, answer));
            }
        }
        loop {
            let mut has_met = false;
            // A holder of the other end may be there for the same reason, and know less.
            let settled = a_few_times(|| match ask(self, &held) {
                None => {
                    let Some(_other) = other.place.try_lock() else {
                        has_met = true;
                        return None;
                    };
                    Some(ask(self, &held))
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

    /// Locks both ends.
    fn lock_both(&self) -> [Held<'_, L>; 2] {
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

    #[inline]
    fn turn_of_tail(&self, tail: &Held<'_, L>) -> Option<Turn> {
        let (pushed, popped, all) = (&self.tail.passed, &self.head.passed, self.capacity());
        tail.with_mut(|place| {
            // SAFETY: the lock is held (Invariant 1).
            let place = unsafe { &mut *place };
            place.room(pushed, popped, all).map(|passed| place.turn(passed, all))
        })
    }

    #[inline]
    fn turn_of_head(&self, head: &Held<'_, L>) -> Option<Turn> {
        let (popped, pushed, all) = (&self.head.passed, &self.tail.passed, self.capacity());
        head.with_mut(|place| {
            // SAFETY: the lock is held (Invariant 1).
            let place = unsafe { &mut *place };
            place.value(popped, pushed).map(|passed| place.turn(passed, all))
        })
    }

    fn room(&self, tail: &Held<'_, L>) -> Option<usize> {
        let (pushed, popped, all) = (&self.tail.passed, &self.head.passed, self.capacity());
        // SAFETY: the lock is held (Invariant 1).
        tail.with_mut(|place| unsafe { (*place).room(pushed, popped, all) })
    }

    fn oldest(&self, head: &Held<'_, L>) -> Option<usize> {
        let (popped, pushed) = (&self.head.passed, &self.tail.passed);
        head.with_mut(|place| {
            // SAFETY: the lock is held (Invariant 1).
            let place = unsafe { &mut *place };
            place.value(popped, pushed).map(|_| place.slot)
        })
    }

    /// Puts `value` into the slot of the tail's turn, for the holder of its lock.
    #[inline]
    fn put(&self, turn: &Turn, value: T) {
        self.slots[turn.slot].with_mut(|slot| {
            // SAFETY: no other thread touches the slot until the tail has passed it (Invariant 3).
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        // Release: the value is in. The partner is the Acquire of `Place::look`.
        self.tail.passed.store(turn.passed, Ordering::Release);
    }

    /// Takes the value out of the slot of the head's turn, for the holder of its lock.
    #[inline]
    fn take(&self, turn: &Turn) -> T {
        let value = self.slots[turn.slot].with(|slot| {
            // SAFETY: no other thread touches the slot until the head has passed it (Invariant 3).
            let slot = unsafe { &*slot };
            // SAFETY: it has a value (Invariant 3), which is taken once: the head passes it now.
            unsafe { slot.assume_init_read() }
        });
        // Release: the value is out. The partner is the Acquire of `Place::look`.
        self.head.passed.store(turn.passed, Ordering::Release);
        value
    }

    /// Calls `look` with the value in `slot`, the oldest, for the holder of the head's lock.
    fn with_value<R>(&self, slot: usize, look: impl FnOnce(&T) -> R) -> R {
        self.slots[slot].with(|slot| {
            // SAFETY: no other thread touches the slot while the lock is held (Invariant 3).
            let slot = unsafe { &*slot };
            // SAFETY: it has a value (Invariant 3).
            look(unsafe { slot.assume_init_ref() })
        })
    }

    fn push_exclusive(&mut self, value: T) -> Result<(), Full<T>> {
        let (all, popped) = (self.capacity(), &self.head.passed);
        let End { place, passed: pushed } = &mut *self.tail;
        let place = place.get_mut().get_mut();
        let Some(passed) = place.room(pushed, popped, all) else { return Err(Full(value)) };
        let turn = place.turn(passed, all);
        self.put(&turn, value);
        Ok(())
    }

    fn pop_exclusive(&mut self) -> Option<T> {
        let (all, pushed) = (self.capacity(), &self.tail.passed);
        let End { place, passed: popped } = &mut *self.head;
        let place = place.get_mut().get_mut();
        let passed = place.value(popped, pushed)?;
        let turn = place.turn(passed, all);
        Some(self.take(&turn))
    }

    fn first_mut(&mut self) -> Option<&mut T> {
        let End { place, passed: popped } = &mut *self.head;
        let place = place.get_mut().get_mut();
        place.value(popped, &self.tail.passed)?;
        // SAFETY: the slot has a value (Invariant 3).
        Some(unsafe { self.slots[place.slot].get_mut().assume_init_mut() })
    }
}

forward! {
    impl[T, L: RawMutex] ConcurrentQueue for LockedRing<T, L>;
    item: T;
    progress: Progress::Blocking;
    capacity: |queue| queue.capacity();
}

conveniences! {
    impl[T, L: RawMutex] LockedRing<T, L>;
    value: T;
    debug: |ring| len = ring.try_len(), capacity = ring.capacity();
}

exclusive! {
    impl[T, L: RawMutex] LockedRing<T, L>;
    value: T;
    push_mut: |ring, value| ring.push_exclusive(value);
    returns: Result<(), Full<T>>;
    pop_mut: |ring| ring.pop_exclusive();
    peek_mut: |ring| ring.first_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_machine::atomic::AtomicUsize;

    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(LockedRing<u32>: Send, Sync);
    assert_impl_all!(LockedRing<std::cell::Cell<u32>>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(LockedRing<std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn a_call_in_vain_needs_both_ends_and_one_that_succeeds_only_its_own() {
        let ring = LockedRing::with_capacity(2);
        let head = ring.head.place.lock();
        assert_eq!((ring.try_push(1), ring.try_push(2)), (Ok(()), Ok(())));
        drop(head);
        let tail = ring.tail.place.lock();
        assert_eq!((ring.pop(), ring.pop()), (Some(1), Some(2)));
        std::thread::scope(|scope| {
            let popper = scope.spawn(|| ring.pop());
            // A pop that did not ask for the lock would be over by then.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let turn = ring.turn_of_tail(&tail).unwrap();
            ring.put(&turn, 3);
            drop(tail);
            assert_eq!(popper.join().unwrap(), Some(3));
        });
    }

    #[test]
    fn the_counts_wrap() {
        let mut ring = LockedRing::with_capacity(3);
        for end in [&mut ring.head, &mut ring.tail] {
            end.passed = AtomicUsize::new(usize::MAX - 1);
            end.place.get_mut().get_mut().other = usize::MAX - 1;
        }
        for round in 0..4 {
            assert!((0..3).all(|number| ring.try_push(round + number).is_ok()));
            assert_eq!((ring.try_push(9), ring.len()), (Err(Full(9)), 3));
            assert!((0..3).all(|number| ring.pop() == Some(round + number)));
            assert_eq!((ring.pop(), ring.is_empty()), (None, true));
        }
    }
}
