//! The process that a runtime was made in, which is the only one that has its kernel threads.

/// A process, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// The calling one.
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    /// Whether it is the calling one.
    pub(crate) fn is_here(self) -> bool {
        self == Self::here()
    }

    /// # Panics
    ///
    /// If the caller is a forked child of it.
    #[track_caller]
    pub(crate) fn must_be_here(self) {
        assert!(
            self.is_here(),
            "this runtime was made before a fork, and its kernel threads are in process {}: make a runtime in the child, or one after forking",
            self.0
        );
    }
}
