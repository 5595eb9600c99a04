//! Time for waiters: ticks cheap enough for a slow path, and deadlines.

use core::time::Duration;

/// A moment on the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(u64);

/// The moment it is now.
#[cfg(feature = "std")]
#[inline]
pub fn now() -> Ticks {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    Ticks(START.elapsed().as_nanos() as u64)
}

impl Ticks {
    /// Nanoseconds from `earlier` to `self`; 0 if `earlier` is the later one.
    #[inline]
    #[must_use]
    pub fn nanos_since(self, earlier: Ticks) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `nanos` nanoseconds later.
    #[inline]
    #[must_use]
    pub fn plus_nanos(self, nanos: u64) -> Ticks {
        Ticks(self.0.saturating_add(nanos))
    }
}

/// When a wait gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(#[cfg(feature = "std")] Option<std::time::Instant>);

#[cfg(feature = "std")]
impl Deadline {
    /// Never gives up.
    pub const NEVER: Deadline = Deadline(None);

    /// `timeout` from now; a time beyond the end of the clock is [`NEVER`](Self::NEVER).
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        Self(std::time::Instant::now().checked_add(timeout))
    }

    /// At `instant`.
    #[must_use]
    pub fn at(instant: std::time::Instant) -> Self {
        Self(Some(instant))
    }

    /// Whether it is past.
    #[must_use]
    pub fn passed(self) -> bool {
        self.0.is_some_and(|at| std::time::Instant::now() >= at)
    }
}
