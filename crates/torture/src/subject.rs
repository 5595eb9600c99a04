//! Any `lock_api` lock behind one small interface, so that one piece of code does all the counting.

use std::time::Duration;

use lock_api::{RawMutex, RawMutexTimed};

/// A way to ask for a lock.
#[derive(Clone, Copy, Debug)]
pub enum Attempt {
    /// Wait until the lock is acquired.
    Wait,
    /// Take it if it is free.
    Try,
    /// Wait at most this long. A lock that cannot give up takes this for [`Try`](Self::Try).
    TryFor(Duration),
}

/// A lock under torture.
pub trait Subject: Send + Sync {
    /// Asks for the lock. If it is acquired, runs `section` while holding it, and then releases it.
    /// Returns whether it was acquired.
    fn run(&self, attempt: Attempt, section: &mut dyn FnMut()) -> bool;
}

/// A lock that waits for ever or not at all.
#[derive(Debug)]
pub struct Untimed<R>(R);

/// A lock that can give up.
#[derive(Debug)]
pub struct Timed<R>(R);

impl<R: RawMutex> Untimed<R> {
    /// Returns a free lock.
    #[must_use]
    pub fn free() -> Self {
        Self(R::INIT)
    }
}

impl<R: RawMutex> Timed<R> {
    /// Returns a free lock.
    #[must_use]
    pub fn free() -> Self {
        Self(R::INIT)
    }
}

impl<R: RawMutex + Send + Sync> Subject for Untimed<R> {
    fn run(&self, attempt: Attempt, section: &mut dyn FnMut()) -> bool {
        let guard = match attempt {
            Attempt::Wait => Some(self.0.lock()),
            Attempt::Try | Attempt::TryFor(_) => self.0.try_lock(),
        };
        holding(&self.0, guard, section)
    }
}

impl<R: RawMutexTimed<Duration = Duration> + Send + Sync> Subject for Timed<R> {
    fn run(&self, attempt: Attempt, section: &mut dyn FnMut()) -> bool {
        let guard = match attempt {
            Attempt::Wait => Some(self.0.lock()),
            Attempt::Try => self.0.try_lock(),
            Attempt::TryFor(timeout) => self.0.try_lock_for(timeout),
        };
        holding(&self.0, guard, section)
    }
}

/// Runs `section` and releases the lock, if `guard` says that it is held.
fn holding<R: RawMutex>(lock: &R, guard: Option<R::Guard>, section: &mut dyn FnMut()) -> bool {
    let Some(guard) = guard else { return false };
    section();
    // SAFETY: `guard` is that of the acquisition just made, and no other code has it.
    unsafe { lock.unlock(guard) };
    true
}
