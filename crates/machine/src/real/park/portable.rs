//! Sleeping on a word where the system has no futex that the standard library does not hide: queues
//! of waiters, found by address.
//!
//! ```text
//! BUCKETS[hash(address)] -> Mutex<[ (address, waiter), (address, waiter), ... ]>   oldest first
//! ```
//!
//! Each waiter sleeps on a condition variable of its own. Why not `thread::park`: its token belongs
//! to the thread's own code, which may wait for one itself. A wait here could take that token, or
//! leave one behind that ends the next wait of that code for no reason.
//!
//! # Invariants
//!
//! 1. Checking the word and joining the queue happen under the bucket's mutex, which every waker
//!    takes after it has changed the word. So a waiter either sees the change or is found in the
//!    queue.
//! 2. The thread that removes a waiter from its queue decides how that wait ended. It is the waker,
//!    or at the deadline the waiter itself.

use crate::clock::Deadline;
use crate::park::Woken;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// More than processors anywhere, so that two words that are busy at one time seldom share one.
const BUCKETS: usize = 256;

static QUEUES: [Mutex<Vec<Waiting>>; BUCKETS] = [const { Mutex::new(Vec::new()) }; BUCKETS];

struct Waiting {
    /// The address of the word.
    address: usize,
    /// The thread that sleeps.
    waiter: Arc<Waiter>,
}

#[derive(Default)]
struct Waiter {
    /// Set by the waker, once, after it has taken the waiter from its queue.
    woken: Mutex<bool>,
    /// Notified when a waker has removed the waiter from its queue.
    is_woken: Condvar,
}

impl Waiter {
    /// Sleeps until woken or until `deadline`; says whether woken.
    fn sleep(&self, deadline: Deadline) -> bool {
        let mut woken = whole(self.woken.lock());
        while !*woken {
            woken = match deadline.remaining() {
                None => whole(self.is_woken.wait(woken)),
                Some(left) if !left.is_zero() => whole(self.is_woken.wait_timeout(woken, left)).0,
                Some(_) => return false,
            };
        }
        true
    }

    fn wake(&self) {
        *whole(self.woken.lock()) = true;
        self.is_woken.notify_one();
    }
}

pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    let address = core::ptr::from_ref(word).addr();
    let waiter = {
        let mut queue = queue(address);
        // Relaxed: by Invariant 1 the bucket's mutex makes a waker's change visible here if the
        // waker has come before us.
        if word.load(Ordering::Relaxed) != expected {
            return Woken::Changed;
        }
        if deadline.passed() {
            return Woken::TimedOut;
        }
        let waiter = Arc::new(Waiter::default());
        queue.push(Waiting { address, waiter: waiter.clone() });
        waiter
    };
    if waiter.sleep(deadline) {
        return Woken::Woken;
    }
    let mut queue = queue(address);
    let still_queued = queue.iter().position(|other| Arc::ptr_eq(&other.waiter, &waiter));
    match still_queued {
        Some(at) => {
            queue.remove(at);
            Woken::TimedOut
        }
        None => Woken::Woken,
    }
}

pub(crate) fn wake(word: *const AtomicU32, count: usize) -> usize {
    let mut woken = Vec::new();
    {
        let mut queue = queue(word.addr());
        queue.retain(|waiting| {
            let takes = waiting.address == word.addr() && woken.len() < count;
            if takes {
                woken.push(waiting.waiter.clone());
            }
            !takes
        });
    }
    for waiter in &woken {
        waiter.wake();
    }
    woken.len()
}

/// The queue that waiters on that address are in.
fn queue(address: usize) -> MutexGuard<'static, Vec<Waiting>> {
    // Fibonacci hashing; the low two bits of a word's address are always 0.
    let hash = (address as u64 >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    whole(QUEUES[(hash >> 56) as usize % BUCKETS].lock())
}

/// Returns the data of a mutex of this file, also of a poisoned one: no panic leaves the data half
/// changed.
fn whole<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
