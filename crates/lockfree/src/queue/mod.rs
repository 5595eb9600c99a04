//! Queues: first in, first out.

use core::fmt;

use stanchion_machine::wait::transfers;
use stanchion_spin::Backoff;

use crate::Progress;

mod faa_array;
mod list;
mod locked;
mod michael_scott;
mod nikolaev;
mod prakash_lee_johnson;
mod ring;
mod segmented;
mod two_ends;
mod two_lock;

pub use faa_array::FaaArrayQueue;
pub use locked::LockedQueue;
pub use michael_scott::MichaelScottQueue;
pub use nikolaev::NikolaevQueue;
pub use prakash_lee_johnson::PrakashLeeJohnsonQueue;
pub use ring::LockedRing;
pub use segmented::SegmentedQueue;
pub use two_lock::TwoLockQueue;

/// The first delay of a thread that meets another one at the same end of a queue is at most so many
/// transfers of a line: some hundred operations of one thread alone.
///
/// Why not the time of one hand-off, as for a lock: if threads take turns at an end, each operation
/// fetches every line that it needs from the other's cache. A thread that stays away for longer
/// lets the other one do many operations with the lines in its own cache. With other first delays
/// `cargo contest structures --only FaaArrayQueue` shows for a pair by two threads, in ns, where a
/// transfer takes 100 ns, without other work and with 500 ns of it after each operation:
///
/// | 1 | 3 | 10 | 30 | 100 |
/// | --- | --- | --- | --- | --- |
/// | 160 | 128 | 85 | 48 | 25 |
/// | 780 | 800 | 775 | 800 | 780 |
///
/// and [`MichaelScottQueue`], with counts, 80 to 380 with 1 and 42 with 30; 950 and 1,010 with the
/// work. Where a transfer takes 26 ns, simulated, pairs of 8 threads take 1.7 times as long with 30
/// as with 100. Other figures of these queues in the guide were measured with 30.
const AWAY_TRANSFERS: u64 = 100;

/// Returns a backoff that begins with [`AWAY_TRANSFERS`].
fn away() -> Backoff {
    Backoff::new().with_slot(transfers(AWAY_TRANSFERS))
}

/// A queue that threads share.
///
/// ```
/// use stanchion_lockfree::ConcurrentQueue;
///
/// fn take_all<Q: ConcurrentQueue>(queue: &Q) -> Vec<Q::Item> {
///     std::iter::from_fn(|| queue.pop()).collect()
/// }
/// ```
pub trait ConcurrentQueue {
    /// The type of the values.
    type Item;

    /// Tells what a thread that stops in the middle of an operation does to the others.
    const PROGRESS: Progress;

    /// Puts `value` at the end.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if the queue is bounded and was full at some moment during the
    /// call. In a [`NikolaevQueue`] a slot also counts as taken while another thread's call works
    /// on it.
    fn try_push(&self, value: Self::Item) -> Result<(), Full<Self::Item>>;

    /// Takes the oldest value. Returns `None` if there was nothing at some moment during the call.
    fn pop(&self) -> Option<Self::Item>;

    /// Returns whether there was nothing in it at some moment during the call.
    fn is_empty(&self) -> bool;

    /// Returns the most that it can hold, or `None` if only memory limits it.
    fn capacity(&self) -> Option<usize> {
        None
    }
}

/// An error: a bounded queue was full. The value comes back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full")]
pub struct Full<T>(
    /// The value that was to be pushed.
    pub T,
);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Full").finish_non_exhaustive()
    }
}
