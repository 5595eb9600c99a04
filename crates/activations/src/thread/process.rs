//! The process in which a runtime was made. Only that process has the runtime's kernel threads.

/// A process, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// Returns the calling process.
    pub fn current() -> Self {
        Self(std::process::id())
    }

    /// Returns whether this is the calling process.
    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }

    /// Panics if the calling process is a forked child of this one.
    #[track_caller]
    pub(crate) fn assert_current(self) {
        assert!(
            self.is_current(),
            "this runtime was made before a fork, and its kernel threads are in process {}: make a runtime in the child, or one after forking",
            self.0
        );
    }
}
