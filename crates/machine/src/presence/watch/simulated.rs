//! A watch, exactly: the scheduler wakes the sleeper at the moment of the switch.

use crate::atomic::AtomicU32;
use crate::clock::Deadline;
use crate::park;
use crate::presence::Refused;
use crate::presence::watch::Slept;
use stanchion_simulator::{inside, os::watch};

/// The registrations of a watch. The scheduler keeps them, by the address of the watch's word.
#[derive(Debug)]
pub(crate) struct Eye(());

fn place(word: &AtomicU32) -> *const () {
    core::ptr::from_ref(word).cast()
}

impl Eye {
    pub(crate) fn new() -> Self {
        Self(())
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        None
    }

    pub(crate) fn arm(&self, word: &AtomicU32, index: usize) -> bool {
        watch::arm(index, place(word))
    }

    pub(crate) fn disarm(&self, word: &AtomicU32, index: usize) {
        watch::disarm(index, place(word));
    }

    pub(crate) fn sleep(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> Slept {
        let until = deadline.monotonic_nanos().unwrap_or(u64::MAX);
        let over = || word.peek() != expected || watch::has_seen(place(word));
        loop {
            let parked = inside::park(place(word), over, until);
            if watch::take(place(word)) {
                return Slept::Switched;
            }
            if word.peek() != expected {
                return Slept::Changed;
            }
            if parked == inside::Parked::TimedOut {
                return Slept::TimedOut;
            }
        }
    }

    pub(crate) fn ring(&self, word: &AtomicU32) {
        park::wake_one(word);
    }
}
