//! A futex: the scheduler keeps the queue of each word, first come, first woken.

use crate::atomic::AtomicU32;
use crate::clock::Deadline;
use crate::park::Woken;
use stanchion_simulator::inside::{self, Parked};

/// The number of buckets is that of the real machine, because it is part of the simulation which
/// locks share a bucket.
pub(crate) const BUCKETS: usize = 1024;

pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    let until = deadline.monotonic_nanos().unwrap_or(u64::MAX);
    let address = core::ptr::from_ref(word).cast();
    match inside::park(address, || word.peek() != expected, until) {
        Parked::Woken => Woken::Woken,
        Parked::Changed => Woken::Changed,
        Parked::TimedOut => Woken::TimedOut,
    }
}

pub(crate) fn wake(word: *const AtomicU32, count: usize) -> usize {
    inside::wake(word.cast(), count)
}

/// Returns the run's own number for the address. It is the same in every run of one program, while
/// the address is not.
pub(crate) fn place_of(address: *const ()) -> usize {
    inside::identity(address) as usize
}
