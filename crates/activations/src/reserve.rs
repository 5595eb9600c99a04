//! The carriers without a seat: those that have nothing to do, and those with threads that only they can run.
//!
//! Why they queue for seats instead of sharing them: a thread that has begun stays on its kernel thread, because the compiler may have kept the address
//! of a thread-local. So a carrier that lost its seat while a thread of it was in the kernel still has that thread, and all others that began there.
//!
//! # Invariants
//!
//! 1. A carrier in `wanting` stands `WANTING`, and one in `free` or `spares` stands `SPARE`, whenever the lock is free.
//!    A carrier that was taken out of one of them belongs to the thread that took it out, which gives it a seat.
//! 2. `wanting` is counted in `waiting`.
//! 3. A seat in `closed` is nobody's, and its number was not below `Demand::allowed` when it was put there.
//! 4. A seat in `vacant` is nobody's, and nobody is in the other lists when it is put there.
//!
//! # Orderings
//!
//! A carrier stands `SPARE`, then a fence, then looks at its mail; who mails it has a fence, then looks how it stands. One of the two sees the other.

use std::collections::VecDeque;

use machine::atomic::{AtomicUsize, Fresh, Ordering, fence};
use stanchion_competitive::Mutex;

use crate::carrier::Carrier;

#[derive(Default)]
struct Lists {
    /// Those without guests (`history.rs`).
    free: Vec<usize>,
    /// Those with guests.
    spares: Vec<usize>,
    wanting: VecDeque<usize>,
    vacant: Vec<usize>,
    closed: Vec<usize>,
}

/// What a carrier without a seat does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There is a seat that nobody has: it is the caller's.
    Seat(usize),
    /// It sleeps, and wants one.
    Wanting,
    /// It sleeps.
    Spare,
}

/// The carriers without a seat.
pub(crate) struct Reserve {
    lists: Mutex<Lists>,
    waiting: AtomicUsize,
}

impl Reserve {
    pub(crate) fn new() -> Self {
        Self { lists: Mutex::new(Lists::default()), waiting: AtomicUsize::fresh(0) }
    }

    /// How many carriers want a seat, as far as is known.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        // Relaxed: a hint; who goes to sleep has a fence before it looks.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Lets the calling carrier, which has no seat, sleep, unless a seat is vacant. It `wants` one if it has threads to
    /// run, and has guests if threads have begun on it that have not ended.
    pub(crate) fn rest(
        &self,
        index: usize,
        carrier: &Carrier,
        wants: bool,
        has_guests: bool,
    ) -> Rest {
        let mut lists = self.lists.lock();
        if let Some(seat) = lists.vacant.pop() {
            return Rest::Seat(seat);
        }
        carrier.standing().rest(wants);
        fence(Ordering::SeqCst);
        if wants || carrier.has_mail() {
            carrier.standing().rest(true);
            self.queue(&mut lists, index);
            return Rest::Wanting;
        }
        let list = if has_guests { &mut lists.spares } else { &mut lists.free };
        list.push(index);
        Rest::Spare
    }

    /// Nobody could be given this seat, which the caller has: the next that rests has it, or who has begun to rest meanwhile, whom this returns.
    pub(crate) fn vacate(&self, seat: usize) -> Option<usize> {
        let mut lists = self.lists.lock();
        let to = self.next(&mut lists, true).or_else(|| lists.spares.pop());
        if to.is_none() {
            lists.vacant.push(seat);
        }
        to
    }

    fn next(&self, lists: &mut Lists, free: bool) -> Option<usize> {
        let wanting = lists.wanting.pop_front();
        // Relaxed: under the lock.
        self.waiting.store(lists.wanting.len(), Ordering::Relaxed);
        wanting.or_else(|| if free { lists.free.pop() } else { None })
    }

    /// Takes out a carrier that has neither a seat nor guests; it is the caller's, to be given a seat.
    pub(crate) fn take_free(&self) -> Option<usize> {
        self.lists.lock().free.pop()
    }

    /// The caller's seat closes, unless `stays` says that it is to stay after all. Whether it has.
    pub(crate) fn close(&self, seat: usize, stays: impl FnOnce() -> bool) -> bool {
        let mut lists = self.lists.lock();
        let closes = !stays();
        if closes {
            lists.closed.push(seat);
        }
        closes
    }

    /// A seat that has been closed, with a number below `allowed`: it is the caller's.
    pub(crate) fn open(&self, allowed: usize) -> Option<usize> {
        let mut lists = self.lists.lock();
        let place = lists.closed.iter().position(|&seat| seat < allowed)?;
        Some(lists.closed.swap_remove(place))
    }

    /// Whether somebody could be given a seat.
    pub(crate) fn has_any(&self) -> bool {
        let lists = self.lists.lock();
        !(lists.wanting.is_empty() && lists.free.is_empty() && lists.spares.is_empty())
    }

    fn queue(&self, lists: &mut Lists, index: usize) {
        lists.wanting.push_back(index);
        // Relaxed: under the lock.
        self.waiting.store(lists.wanting.len(), Ordering::Relaxed);
    }

    /// A thread of that carrier has been mailed to it. Whether it slept without a seat and now wants one, so that somebody must be told.
    pub(crate) fn call(&self, index: usize, carrier: &Carrier) -> bool {
        fence(Ordering::SeqCst);
        if !carrier.standing().is_spare() {
            return false;
        }
        let mut lists = self.lists.lock();
        // Invariant 1.
        let Some(place) = lists.spares.iter().position(|&spare| spare == index) else {
            return false;
        };
        lists.spares.swap_remove(place);
        carrier.standing().rest(true);
        self.queue(&mut lists, index);
        true
    }

    /// Gives the caller's seat to the carrier that has wanted one longest, or else, with `free`, to one that has neither
    /// threads to run nor guests; `give` does it. Whether there was one.
    pub(crate) fn give(&self, free: bool, give: impl FnOnce(usize)) -> bool {
        let to = self.next(&mut self.lists.lock(), free);
        to.map(give).is_some()
    }

    /// Calls `end` with each of them, which are in no list any more.
    pub(crate) fn end(&self, mut end: impl FnMut(usize)) {
        let mut lists = self.lists.lock();
        let Lists { free, spares, wanting, vacant: _, closed: _ } = &mut *lists;
        free.drain(..).chain(spares.drain(..)).chain(wanting.drain(..)).for_each(&mut end);
        // Relaxed: under the lock.
        self.waiting.store(0, Ordering::Relaxed);
    }
}
