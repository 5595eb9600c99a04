//! Sleeping on a word where the system has no futex that the standard library does not hide: queues of parked threads, found by address.
//!
//! ```text
//! BUCKETS[hash(address)] -> Mutex<[ (address, waiter), (address, waiter), ... ]>   oldest first
//! ```
//!
//! # Invariants
//!
//! 1. Checking the word and joining the queue happen under the bucket's mutex, which every waker takes after it has changed the word. So a waiter
//!    either sees the change or is found in the queue.
//! 2. Whoever removes a waiter from its queue, the waker or, at its deadline, the waiter itself, decides how that wait ended.

use crate::clock::Deadline;
use crate::park::Woken;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::vec::Vec;

/// More than processors anywhere, so that two words that are busy at one time seldom share one.
const BUCKETS: usize = 256;

static QUEUES: [Mutex<Vec<Waiting>>; BUCKETS] = [const { Mutex::new(Vec::new()) }; BUCKETS];

struct Waiting {
    address: usize,
    waiter: Arc<Waiter>,
}

struct Waiter {
    thread: Thread,
    /// Set by the waker, once, after it has taken the waiter from its queue.
    woken: AtomicBool,
}

pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    let address = core::ptr::from_ref(word).addr();
    let waiter = {
        let mut queue = queue(address);
        // Relaxed: by Invariant 1 the bucket's mutex makes a waker's change visible here if the waker has come before us.
        if word.load(Ordering::Relaxed) != expected {
            return Woken::Changed;
        }
        if deadline.passed() {
            return Woken::TimedOut;
        }
        let waiter =
            Arc::new(Waiter { thread: std::thread::current(), woken: AtomicBool::new(false) });
        queue.push(Waiting { address, waiter: waiter.clone() });
        waiter
    };
    loop {
        // Acquire pairs with the Release in `wake`: nothing of the waker's comes after our return.
        if waiter.woken.load(Ordering::Acquire) {
            return Woken::Woken;
        }
        match deadline.remaining() {
            None => std::thread::park(),
            Some(left) if !left.is_zero() => std::thread::park_timeout(left),
            Some(_) => break,
        }
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
        // Release pairs with the Acquire in `wait`.
        waiter.woken.store(true, Ordering::Release);
        waiter.thread.unpark();
    }
    woken.len()
}

/// The queue that waiters on that address are in. Nothing inside panics half way, so a poisoned one is as good.
fn queue(address: usize) -> MutexGuard<'static, Vec<Waiting>> {
    // Fibonacci hashing; the low two bits of a word's address are always 0.
    let hash = (address as u64 >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    QUEUES[(hash >> 56) as usize % BUCKETS].lock().unwrap_or_else(PoisonError::into_inner)
}
