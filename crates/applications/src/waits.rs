//! The waits of threads for locks.
//!
//! Each thread keeps its own [`Waits`] and adds to them without sharing. They are merged when the
//! threads are done. A wait begins when a `try_lock` has failed. So an uncontended acquisition
//! costs one addition more than the lock itself, and only threads that wait anyway read the clock.
//!
//! The paper had to take the time until the *next release* for the waiting time, because the fast
//! path was compiled in. Here it is the time until the lock was *got*. (Karlin, Li, Manasse,
//! Owicki, *Empirical studies of competitive spinning for a shared-memory multiprocessor*, 1991,
//! section 7.)

use lock_api::{Mutex, MutexGuard, RawMutex};
use stanchion_machine::clock;

/// The waits of one group of locks.
///
/// ```
/// use stanchion_applications::Waits;
/// let mut waits = Waits::default();
/// waits.waited(1_500);
/// waits.waited(3);
/// assert_eq!((waits.contended(), waits.max_ns(), waits.mean_ns()), (2, 1_500, 751.5));
/// assert_eq!(waits.histogram().collect::<Vec<_>>(), [(2, 1), (1_024, 1)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The number of acquisitions.
    acquisitions: u64,
    /// The number of those that waited.
    contended: u64,
    /// The sum of the waits, in nanoseconds.
    total_ns: u64,
    /// The longest wait, in nanoseconds.
    max_ns: u64,
    /// Waits of 2^k to 2^(k+1) - 1 ns; those of 0 ns are in the first class. `None` before the
    /// first wait: a program may have hundreds of locks without a wait.
    classes: Option<Box<[u64; 64]>>,
}

impl Waits {
    /// Locks `mutex` and records the wait, if there was one.
    #[inline]
    pub fn lock<'a, L: RawMutex, T>(&mut self, mutex: &'a Mutex<L, T>) -> MutexGuard<'a, L, T> {
        match mutex.try_lock() {
            Some(guard) => {
                self.passed();
                guard
            }
            None => self.lock_contended(mutex),
        }
    }

    #[cold]
    fn lock_contended<'a, L: RawMutex, T>(
        &mut self,
        mutex: &'a Mutex<L, T>,
    ) -> MutexGuard<'a, L, T> {
        let began = clock::now();
        let guard = mutex.lock();
        self.waited(clock::now().nanos_since(began));
        guard
    }

    /// Records an acquisition after a wait of `nanos`.
    pub fn waited(&mut self, nanos: u64) {
        self.acquisitions += 1;
        self.contended += 1;
        self.total_ns = self.total_ns.saturating_add(nanos);
        self.max_ns = self.max_ns.max(nanos);
        let classes = self.classes.get_or_insert_with(|| Box::new([0; 64]));
        classes[nanos.max(1).ilog2() as usize] += 1;
    }

    /// Records that nothing had to be waited for.
    #[inline]
    pub(crate) fn passed(&mut self) {
        self.acquisitions += 1;
    }

    /// Adds what another thread has recorded.
    pub fn merge(&mut self, other: &Waits) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let Some(theirs) = &other.classes else { return };
        let mine = self.classes.get_or_insert_with(|| Box::new([0; 64]));
        for (mine, theirs) in mine.iter_mut().zip(theirs.iter()) {
            *mine += theirs;
        }
    }

    /// Times a lock was got.
    #[must_use]
    pub fn acquisitions(&self) -> u64 {
        self.acquisitions
    }

    /// Times it was not free at once.
    #[must_use]
    pub fn contended(&self) -> u64 {
        self.contended
    }

    /// Nanoseconds waited in all.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Nanoseconds of the longest wait.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Nanoseconds of the average wait; 0 if there was none.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.contended == 0 { 0.0 } else { self.total_ns as f64 / self.contended as f64 }
    }

    /// Upper bound in nanoseconds of the class that holds the `share` (0 to 1) quantile of the
    /// waits; 0 if there was none.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = (share.clamp(0.0, 1.0) * self.contended as f64).ceil() as u64;
        let mut below = 0;
        for (exponent, &count) in self.classes.iter().flat_map(|classes| classes.iter()).enumerate()
        {
            below += count;
            if count > 0 && below >= rank {
                return ((2_u128 << exponent) - 1).min(self.max_ns.into()) as u64;
            }
        }
        0
    }

    /// Returns the classes that are not empty. (`from`, `count`) tells that `count` waits took
    /// `from` to 2·`from` - 1 ns. Waits of 0 ns are in the class from 1.
    pub fn histogram(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let classes = self.classes.iter().flat_map(|classes| classes.iter());
        let classes = classes.enumerate().filter(|&(_, &count)| count > 0);
        classes.map(|(exponent, &count)| (1 << exponent, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_scale() {
        let mut waits = Waits::default();
        waits.waited(0);
        waits.waited(u64::MAX);
        waits.waited(u64::MAX);
        assert_eq!(waits.histogram().collect::<Vec<_>>(), [(1, 1), (1 << 63, 2)]);
        assert_eq!(waits.total_ns(), u64::MAX);
        assert_eq!(waits.quantile_ns(1.0), u64::MAX);
    }

    #[test]
    fn merging_is_recording_in_one_place() {
        let (mut all, mut one, mut other) = (Waits::default(), Waits::default(), Waits::default());
        for nanos in 0..1_000 {
            all.waited(nanos * nanos);
            if nanos % 3 == 0 { &mut one } else { &mut other }.waited(nanos * nanos);
        }
        one.merge(&other);
        assert_eq!(one, all);
    }

    #[test]
    fn quantiles() {
        assert_eq!(Waits::default().quantile_ns(0.5), 0);
        let mut waits = Waits::default();
        for _ in 0..99 {
            waits.waited(5);
        }
        waits.waited(1_000_000);
        assert_eq!(waits.quantile_ns(0.5), 7);
        assert_eq!(waits.quantile_ns(0.99), 7);
        assert_eq!(waits.quantile_ns(1.0), 1_000_000);
    }
}
