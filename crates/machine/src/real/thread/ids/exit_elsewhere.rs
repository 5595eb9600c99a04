//! Calls back when a thread ends: a thread-local with a destructor. The standard library may
//! allocate to register it.

use core::cell::Cell;

/// The thread's number, once it has one.
struct Ends(Cell<Option<usize>>);

impl Drop for Ends {
    fn drop(&mut self) {
        super::thread_ends(self.0.get());
    }
}

std::thread_local! {
    static ENDS: Ends = const { Ends(Cell::new(None)) };
}

/// Arranges that [`super::thread_ends`] is called when the calling thread ends. Fails if it has
/// been called.
pub(super) fn call_when_thread_ends() -> bool {
    ENDS.try_with(|_| ()).is_ok()
}

/// Keeps the calling thread's number until the thread ends.
pub(super) fn keep(index: usize) {
    let _ = ENDS.try_with(|ends| ends.0.set(Some(index)));
}

/// Returns the number that the calling thread keeps.
pub(super) fn kept() -> Option<usize> {
    ENDS.try_with(|ends| ends.0.get()).ok().flatten()
}
