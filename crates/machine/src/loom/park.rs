//! A futex: threads asleep on the address of a word.
//!
//! All words share one table, like one bucket of a kernel's: a mutex around the list of sleepers,
//! and a condition variable for each sleeper. A sleeper may wake for no reason and a deadline may
//! pass, both by [`choice`](crate::choice).

use core::cell::Cell;
use std::rc::Rc;

use super::parked::Sleeper;
use super::world::{World, published};
use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Deadline;
use crate::park::Woken;

/// All addresses share one bucket.
pub(crate) const BUCKETS: usize = 1;

pub(crate) fn place_of(address: *const ()) -> usize {
    address.addr()
}

#[track_caller]
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    let world = World::current();
    let parked = &world.parked;
    let mut table = parked.table.lock().expect("no panic under the table");
    // Relaxed: the kernel compares under its own lock, and promises no more than that lock
    // provides.
    if word.load(Ordering::Relaxed) != expected {
        return Woken::Changed;
    }
    if deadline == Deadline::PAST || (deadline != Deadline::NEVER && super::choice()) {
        return Woken::TimedOut;
    }
    if super::choice() {
        return Woken::Woken;
    }
    let sleeper = Rc::new(Sleeper {
        address: core::ptr::from_ref(word).addr(),
        awake: Cell::new(false),
        signal: loom::sync::Condvar::new(),
    });
    parked.sleepers.borrow_mut().push_back(Rc::clone(&sleeper));
    while !sleeper.awake.get() {
        table = sleeper.signal.wait(table).expect("no panic under the table");
    }
    Woken::Woken
}

#[track_caller]
pub(crate) fn wake(word: *const AtomicU32, count: usize) -> usize {
    let world = World::current();
    let parked = &world.parked;
    let table = parked.table.lock().expect("no panic under the table");
    let mut woken = 0;
    parked.sleepers.borrow_mut().retain(|sleeper| {
        let wake = woken < count && sleeper.address == word.addr();
        if wake {
            sleeper.awake.set(true);
            sleeper.signal.notify_one();
            woken += 1;
        }
        !wake
    });
    drop(table);
    published();
    woken
}
