//! The permits of a semaphore, as a thread has them.

use core::fmt;
use core::mem;
use core::ptr;
use std::sync::Arc;

use lock_api::RawMutex;

use super::Semaphore;
use crate::mutex::RawPolicyMutex;

/// The semaphore is closed, see [`Semaphore::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore is closed: no thread gets permits of it any more")
    }
}

impl core::error::Error for Closed {}

/// Permits of a [`Semaphore`], given back when this is dropped. It may go to another thread.
#[must_use = "permits that are dropped are given back at once"]
pub struct Permits<'s, G: RawMutex = RawPolicyMutex> {
    /// The semaphore that they go back to.
    semaphore: &'s Semaphore<G>,
    /// The number of permits.
    count: u32,
}

/// Permits of a [`Semaphore`] that keep it alive, given back when this is dropped.
#[must_use = "permits that are dropped are given back at once"]
pub struct OwnedPermits<G: RawMutex = RawPolicyMutex> {
    /// The semaphore that they go back to.
    semaphore: Arc<Semaphore<G>>,
    /// The number of permits.
    count: u32,
}

impl<'s, G: RawMutex> Permits<'s, G> {
    /// The permits must have been taken.
    #[inline]
    pub(super) fn new(semaphore: &'s Semaphore<G>, count: u32) -> Self {
        Self { semaphore, count }
    }

    /// Returns the semaphore.
    #[must_use]
    pub fn semaphore(&self) -> &'s Semaphore<G> {
        self.semaphore
    }
}

impl<G: RawMutex> OwnedPermits<G> {
    /// The permits must have been taken.
    #[inline]
    pub(super) fn new(semaphore: Arc<Semaphore<G>>, count: u32) -> Self {
        Self { semaphore, count }
    }

    /// Returns the semaphore.
    #[must_use]
    pub fn semaphore(&self) -> &Arc<Semaphore<G>> {
        &self.semaphore
    }

    /// Does not give them back. [`Semaphore::add_permits`] does, called by any thread at any time.
    pub fn forget(mut self) {
        // Not `mem::forget`, which would keep the semaphore alive for ever.
        self.count = 0;
    }

    /// Takes `count` permits out, into a value of their own. Returns `None` if there are fewer.
    pub fn split(&mut self, count: u32) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(Self { semaphore: self.semaphore.clone(), count })
    }
}

impl<G: RawMutex> Permits<'_, G> {
    /// Does not give them back. [`Semaphore::add_permits`] does, called by any thread at any time.
    ///
    /// ```
    /// use stanchion_competitive::Semaphore;
    /// let semaphore = Semaphore::new(1);
    /// semaphore.acquire().forget();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// semaphore.add_permits(1);
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn forget(self) {
        mem::forget(self);
    }

    /// Takes `count` permits out, into a value of their own. Returns `None` if there are fewer.
    ///
    /// ```
    /// use stanchion_competitive::Semaphore;
    /// let semaphore = Semaphore::new(5);
    /// let mut five = semaphore.acquire_many(5);
    /// let two = five.split(2).unwrap();
    /// assert_eq!((five.count(), two.count()), (3, 2));
    /// drop(two);
    /// assert_eq!(semaphore.available_permits(), 2);
    /// ```
    pub fn split(&mut self, count: u32) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(Self { semaphore: self.semaphore, count })
    }
}

/// Implements the methods of permits that borrow their semaphore and of those that own it.
macro_rules! permits {
    ($permits:ty, $name:literal) => {
        impl<G: RawMutex> $permits {
            /// Returns how many they are.
            #[must_use]
            pub fn count(&self) -> u32 {
                self.count
            }

            /// Adds the permits of `other` to these.
            ///
            /// # Panics
            ///
            /// If `other` is of another semaphore, or if both together are more than
            /// [`Semaphore::MAX_PERMITS`]. Then each gives back its own.
            pub fn merge(&mut self, mut other: Self) {
                let (mine, others): (&Semaphore<G>, &Semaphore<G>) =
                    (&self.semaphore, &other.semaphore);
                assert!(ptr::eq(mine, others), "permits of another semaphore cannot be merged");
                let sum = self.count + other.count;
                assert!(
                    sum <= Semaphore::<G>::MAX_PERMITS,
                    "{sum} permits are more than a semaphore can count"
                );
                self.count = sum;
                other.count = 0;
            }
        }

        impl<G: RawMutex> Drop for $permits {
            #[inline]
            fn drop(&mut self) {
                self.semaphore.add_permits(self.count);
            }
        }

        impl<G: RawMutex> fmt::Debug for $permits {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($name).field("count", &self.count).finish_non_exhaustive()
            }
        }
    };
}

permits!(Permits<'_, G>, "Permits");
permits!(OwnedPermits<G>, "OwnedPermits");
