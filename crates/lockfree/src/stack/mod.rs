//! Stacks: last in, first out.

use crate::Progress;

use crate::memory::{Memory, Store};

mod elimination;
mod herlihy;
mod locked;
mod treiber;

pub use elimination::EliminationStack;
pub use herlihy::HerlihyStack;
pub use locked::LockedStack;
pub use treiber::{PopAll, TreiberStack};

/// A stack that threads share.
///
/// ```
/// use stanchion_lockfree::ConcurrentStack;
///
/// fn take_all<S: ConcurrentStack>(stack: &S) -> Vec<S::Item> {
///     std::iter::from_fn(|| stack.pop()).collect()
/// }
/// ```
pub trait ConcurrentStack {
    /// The type of the values.
    type Item;

    /// Tells what a thread that stops in the middle of an operation does to the others.
    const PROGRESS: Progress;

    /// Puts `value` on top.
    fn push(&self, value: Self::Item);

    /// Takes the value on top. Returns `None` if there is nothing.
    fn pop(&self) -> Option<Self::Item>;

    /// Returns whether there was nothing on it at some moment during the call.
    fn is_empty(&self) -> bool;
}

type LinkIn<T, M> = <<M as Memory>::Store<T> as Store<T>>::Link;
type PointerIn<T, M> = <<M as Memory>::Store<T> as Store<T>>::Pointer;
type OperationIn<'s, T, M> = <<M as Memory>::Store<T> as Store<T>>::Operation<'s>;
