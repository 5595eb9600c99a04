//! Drops the values that are left in a structure, though a value's own drop may panic.

/// Drops all values that `next` gives, each once. If dropping one panics, the others are dropped
/// while it unwinds, as those of a [`Vec`] are.
pub(crate) fn drop_each<T>(next: impl FnMut() -> Option<T>) {
    let mut rest = Rest(next);
    while let Some(value) = (rest.0)() {
        drop(value);
    }
}

/// Drops the values that are left, if a drop has panicked.
struct Rest<T, F: FnMut() -> Option<T>>(F);

impl<T, F: FnMut() -> Option<T>> Drop for Rest<T, F> {
    fn drop(&mut self) {
        while let Some(value) = (self.0)() {
            drop(value);
        }
    }
}

/// Calls its closure when it is dropped, also while a panic unwinds.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    struct Breaks<'c>(&'c Cell<u32>, bool);

    impl Drop for Breaks<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(!self.1, "a drop that is meant to panic");
        }
    }

    #[test]
    fn a_panic_leaves_nothing_undropped() {
        let (dropped, finished) = (Cell::new(0), Cell::new(false));
        let mut left = 0..5;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _finally = Finally(|| finished.set(true));
            drop_each(|| left.next().map(|number| Breaks(&dropped, number == 2)));
        }));
        assert!(outcome.is_err());
        assert_eq!(dropped.get(), 5);
        assert!(finished.get());
    }
}
