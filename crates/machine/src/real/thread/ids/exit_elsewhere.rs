//! Calls back when a thread ends: a thread-local with a destructor. The standard library may
//! allocate to register it.

struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        super::thread_ends();
    }
}

std::thread_local! {
    static ENDS: Ends = const { Ends };
}

/// Arranges that [`super::thread_ends`] is called when the calling thread ends. Fails if it has
/// been called.
pub(super) fn call_when_thread_ends() -> bool {
    ENDS.try_with(|_| ()).is_ok()
}
