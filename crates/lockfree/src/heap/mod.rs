//! Priority queues: the smallest key first.

mod copied;
mod herlihy;
mod locked;
mod multi_queue;
pub mod sequential;
pub(crate) mod words;

pub use copied::CopiedHeap;
pub use herlihy::HerlihyHeap;
pub use locked::{LockedArrayHeap, LockedHeap, LockedSequentialHeap};
pub use multi_queue::MultiQueue;
pub use words::{Block, Total, Words};

use crate::Progress;

/// A priority queue that threads share.
///
/// Keys and values are apart because a structure without locks compares keys that another thread
/// may take out meanwhile: a key is copied and read freely, a value is touched only by the thread
/// that takes it.
///
/// ```
/// use stanchion_lockfree::PriorityQueue;
///
/// fn in_order<H: PriorityQueue>(heap: &H) -> Vec<(H::Key, H::Value)> {
///     std::iter::from_fn(|| heap.pop_min()).collect()
/// }
/// ```
pub trait PriorityQueue {
    /// The key: the smallest comes first.
    type Key;
    /// The value that comes with a key.
    type Value;

    /// Tells what a thread that stops in the middle of an operation does to the others.
    const PROGRESS: Progress;

    /// Puts `value` in, to come out when no smaller key is left.
    fn push(&self, key: Self::Key, value: Self::Value);

    /// Takes an entry with the smallest key. Returns `None` if there was nothing. The docs of a
    /// relaxed structure tell how far from the smallest key it may be.
    fn pop_min(&self) -> Option<(Self::Key, Self::Value)>;

    /// Returns whether there was nothing in it at some moment during the call.
    fn is_empty(&self) -> bool;
}
