//! Iterators that take everything out.

use core::fmt;

/// A structure that an iterator takes items from.
#[doc(hidden)]
pub trait Take {
    /// The type of the items.
    type Item;

    /// Takes one item. Returns `None` if there was nothing.
    fn take(&self) -> Option<Self::Item>;

    /// Takes one item, by the only thread that has the structure.
    fn take_mut(&mut self) -> Option<Self::Item>;
}

/// Takes items out of a shared structure until a look finds nothing. Then it has ended for good.
///
/// Dropping it leaves the rest where it is. While other threads put more in, it may go on for long:
/// bound it with [`Iterator::take`].
///
/// ```
/// use stanchion_lockfree::stack::LockedStack;
///
/// let stack: LockedStack<_> = (1..=3).collect();
/// assert_eq!(stack.drain().take(2).sum::<i32>(), 5);
/// assert_eq!(stack.pop(), Some(1));
/// ```
pub struct Drain<'s, S: ?Sized> {
    /// The structure; `None` once it has ended.
    structure: Option<&'s S>,
}

impl<'s, S: ?Sized> Drain<'s, S> {
    pub(crate) const fn of(structure: &'s S) -> Self {
        Self { structure: Some(structure) }
    }
}

impl<S: Take + ?Sized> Iterator for Drain<'_, S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        let item = self.structure?.take();
        if item.is_none() {
            self.structure = None;
        }
        item
    }
}

impl<S: Take + ?Sized> core::iter::FusedIterator for Drain<'_, S> {}

impl<S: ?Sized> fmt::Debug for Drain<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("ended", &self.structure.is_none()).finish()
    }
}

/// An iterator that owns a structure. It gives its items in the order in which the structure gives
/// them out. Dropping it drops the rest.
///
/// ```
/// use stanchion_lockfree::stack::LockedStack;
///
/// let stack: LockedStack<_> = ["first", "second"].into_iter().collect();
/// assert!(stack.into_iter().eq(["second", "first"]));
/// ```
pub struct IntoIter<S> {
    /// The structure. Only the iterator has it.
    structure: S,
}

impl<S> IntoIter<S> {
    pub(crate) const fn of(structure: S) -> Self {
        Self { structure }
    }
}

impl<S: Take> Iterator for IntoIter<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        self.structure.take_mut()
    }
}

impl<S: Take> core::iter::FusedIterator for IntoIter<S> {}

impl<S: fmt::Debug> fmt::Debug for IntoIter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.structure).finish()
    }
}

/// Drops the values that are left in a structure, one by one. A linked structure is so dropped
/// without recursion.
///
/// If a value's destructor panics, the rest is dropped all the same before the panic goes on.
pub(crate) fn drop_rest<S: Take>(structure: &S) {
    drop_remaining(&mut core::iter::from_fn(|| structure.take()));
}

/// Drops the values that an iterator still has, in the same way.
pub(crate) fn drop_remaining<I: Iterator>(values: &mut I) {
    /// Goes on where a panic stopped it.
    struct Remaining<'i, I: Iterator>(&'i mut I);

    impl<I: Iterator> Drop for Remaining<'_, I> {
        fn drop(&mut self) {
            self.0.for_each(drop);
        }
    }

    Remaining(values).0.for_each(drop);
}
