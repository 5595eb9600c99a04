//! The processors that this process may use, how much of their time, and the length of a cache
//! line.
//!
//! Why not [`std::thread::available_parallelism`]: it rounds a quota of 1.5 processors down to 1,
//! so a pool of that size leaves a third of what was granted unused. It also returns neither the
//! processors nor the reason.

use crate::backend;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;

pub use crossbeam_utils::CachePadded;

/// The distance in bytes that two values need so that writing one does not take the other's line
/// away. It is 128 on x86, where lines of 64 bytes are fetched in pairs.
pub const CACHE_LINE: usize = align_of::<CachePadded<u8>>();

/// Returns the processors that the calling thread may run on, by number, ascending. Never empty.
///
/// Read from the affinity mask on every call (about 1 µs), since it can be changed from outside at
/// any time.
///
/// ```
/// println!("{:?}", stanchion_machine::topology::processors());
/// ```
#[must_use]
pub fn processors() -> Vec<usize> {
    backend::topology::processors()
}

/// Returns how many processors this process may use: those of the mask that it was started with.
///
/// A waiter asks this to know whether the holder can run while the waiter spins. So it is not the
/// calling thread's mask that counts. In a program that pins each thread to a processor of its own,
/// the answer is more than one. In a process that was started under `taskset`, or in a cpuset, with
/// one processor, the answer is one.
///
/// Costs a load once the answer is more than 1. Before that, and on each sixteenth call while it is
/// 1, it takes two system calls. It neither allocates nor opens a file. Where the system refuses
/// the question the answer is 2.
///
/// Changes of the masks after an answer of more than 1 are not noticed.
///
/// ```
/// use stanchion_machine::topology::{online, usable};
/// assert!((1..=online()).contains(&usable()));
/// ```
#[inline]
#[must_use]
pub fn usable() -> usize {
    backend::usable()
}

/// Returns how many processors the machine has running, whether or not this process may use them.
///
/// Reads a file on Linux: not for waiters, see [`usable`].
#[must_use]
pub fn online() -> usize {
    backend::online()
}

/// Returns the share of processor time that the control groups of this process grant it; `None` if
/// they set no limit.
///
/// Reads a handful of files: ask once, not in a loop. The answer is kept for [`known_quota`].
#[must_use]
pub fn quota() -> Option<Quota> {
    let quota = backend::topology::quota();
    // Relaxed: a number by itself.
    KNOWN_QUOTA.store(quota.map_or(0, Quota::rounded_up), Ordering::Relaxed);
    quota
}

/// The last quota in whole processors; 0 if none is known.
static KNOWN_QUOTA: AtomicUsize = AtomicUsize::new(0);

/// Returns the quota, rounded up to whole processors, that [`quota`], [`parallelism`] or
/// [`warm_up`](crate::warm_up) found last. `None` if there is no limit, or none of them was called.
///
/// For waiters: it costs a load, where reading a quota opens files.
///
/// ```
/// use stanchion_machine::topology::{Quota, known_quota, quota};
/// assert_eq!(quota().map(Quota::rounded_up), known_quota());
/// ```
#[inline]
#[must_use]
pub fn known_quota() -> Option<usize> {
    // Relaxed: a number by itself.
    match KNOWN_QUOTA.load(Ordering::Relaxed) {
        0 => None,
        processors => Some(processors),
    }
}

/// Returns the processor that the calling thread runs on, which may be another one by the time this
/// returns; `None` where the system does not tell.
///
/// A few nanoseconds: the C library reads what the kernel keeps up to date.
///
/// ```
/// use stanchion_machine::topology::{current, processors};
/// assert!(current().is_none_or(|cpu| processors().contains(&cpu)));
/// ```
#[inline]
#[must_use]
pub fn current() -> Option<usize> {
    backend::topology::current()
}

/// Returns how many threads of this process can run at once: the number of [`processors`], or the
/// [`quota`] rounded up if that is less. A [pinned](pin) thread counts the processors that it might
/// use before.
///
/// ```
/// use stanchion_machine::topology::{parallelism, processors};
/// assert!((1..=processors().len()).contains(&parallelism()));
/// ```
#[must_use]
pub fn parallelism() -> usize {
    at_once(affinity().processors().len(), quota())
}

/// Returns the processors on which the calling thread may run. If the thread is [pinned](pin),
/// returns those on which it could run before.
///
/// A new thread inherits the mask of the thread that starts it, also if that thread is pinned. In a
/// pool with threads that should run everywhere, each thread [adopts](Affinity::adopt) the affinity
/// of the thread that made the pool. Costs a system call, and 3 ns for a thread that is pinned.
///
/// ```
/// use stanchion_machine::topology::{affinity, pin, processors};
///
/// let all = processors();
/// let _pinned = pin(all[0])?;
/// let affinity = affinity();
/// let started = std::thread::spawn(move || {
///     let inherited = processors();
///     affinity.adopt();
///     (inherited, processors())
/// });
/// assert_eq!(started.join().unwrap(), (vec![all[0]], all));
/// # Ok::<(), stanchion_machine::topology::PinError>(())
/// ```
#[must_use]
pub fn affinity() -> Affinity {
    Affinity(backend::topology::affinity())
}

/// The processors on which a thread may run.
#[derive(Clone, Debug)]
pub struct Affinity(Option<backend::topology::Mask>);

impl Affinity {
    /// Returns the processors by number, ascending. Never empty.
    #[must_use]
    pub fn processors(&self) -> Vec<usize> {
        let known = self.0.as_ref().map(backend::topology::processors_of);
        known.filter(|processors| !processors.is_empty()).unwrap_or_else(processors)
    }

    /// Lets the calling thread run on these processors. If the system refuses, the thread stays as
    /// it is. Costs a system call.
    pub fn adopt(&self) {
        if let Some(mask) = &self.0 {
            backend::topology::restore(mask);
        }
    }
}

fn at_once(processors: usize, quota: Option<Quota>) -> usize {
    quota.map_or(processors, |quota| processors.min(quota.rounded_up())).max(1)
}

/// A limit on processor time: `runtime` in every `period`, both in microseconds.
///
/// ```
/// use stanchion_machine::topology::Quota;
/// let quota = Quota { runtime_us: 150_000, period_us: 100_000 };
/// assert_eq!(quota.processors(), 1.5);
/// assert_eq!(quota.to_string(), "1.5 processors (150000 us in every 100000 us)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Processor time granted in each period, in µs.
    pub runtime_us: u64,
    /// The length of a period, in µs. Not 0.
    pub period_us: u64,
}

impl Quota {
    /// Returns the number of processors that it amounts to.
    #[must_use]
    pub fn processors(self) -> f64 {
        self.runtime_us as f64 / self.period_us as f64
    }

    /// Returns the same number, rounded up, at least 1.
    #[must_use]
    pub fn rounded_up(self) -> usize {
        usize::try_from(self.runtime_us.div_ceil(self.period_us)).unwrap_or(usize::MAX).max(1)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runtime_us, period_us } = self;
        write!(f, "{} processors ({runtime_us} us in every {period_us} us)", self.processors())
    }
}

/// Keeps the calling thread on processor `cpu` until the returned guard is dropped.
///
/// Any processor that the system grants this process will do, also one outside the calling thread's
/// present mask: a thread inherits the mask of the thread that started it, which may have been
/// pinned.
///
/// # Errors
///
/// [`PinError`] if there is no such processor, if this process may not use it, or if the system
/// cannot pin.
///
/// ```
/// use stanchion_machine::topology::{pin, processors};
/// let first = processors()[0];
/// let pinned = pin(first)?;
/// assert_eq!(processors(), [first]);
/// drop(pinned);
/// assert!(pin(1_000_000).is_err());
/// # Ok::<(), stanchion_machine::topology::PinError>(())
/// ```
pub fn pin(cpu: usize) -> Result<Pinned, PinError> {
    backend::topology::pin(cpu).map(|before| Pinned { before, not_send: PhantomData })
}

/// A guard that keeps the calling thread on one processor. Dropping it restores the affinity that
/// the thread had before.
///
/// Not `Send`: it restores this thread's affinity. Guards are to be dropped in reverse order of
/// their making. Forgetting one leaves the thread where it is.
#[derive(Debug)]
#[must_use = "the thread is released when this is dropped"]
pub struct Pinned {
    /// The thread's affinity before it was pinned.
    before: backend::topology::Mask,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        backend::topology::unpin(&self.before);
    }
}

/// The reason why the thread could not be kept on that processor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinError {
    /// The processor does not exist, or the system does not grant it to this process.
    NotAllowed {
        /// The processor asked for.
        cpu: usize,
        /// The processors that the calling thread may run on now.
        allowed: Vec<usize>,
    },
    /// The system has no way to pin a thread, or refuses it.
    Unsupported {
        /// The processor asked for.
        cpu: usize,
        /// The system's reason.
        reason: std::string::String,
    },
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed { cpu, allowed } => write!(
                f,
                "processor {cpu} does not exist or is not granted to this process: choose \
                 one of {allowed:?}"
            ),
            Self::Unsupported { cpu, reason } => {
                write!(f, "the system does not let a thread be pinned to processor {cpu}: {reason}")
            }
        }
    }
}

impl core::error::Error for PinError {}

#[cfg(all(test, not(any(stanchion_loom, stanchion_simulated))))]
mod tests {
    use super::*;

    // A guard restores the affinity of the thread that drops it.
    static_assertions::assert_not_impl_any!(Pinned: Send, Sync);

    #[test]
    fn a_quota_rounds_up_and_never_to_nothing() {
        let quota = |runtime_us| Some(Quota { runtime_us, period_us: 100_000 });
        assert_eq!(at_once(8, None), 8);
        assert_eq!(at_once(8, quota(150_000)), 2);
        assert_eq!(at_once(8, quota(200_000)), 2);
        assert_eq!(at_once(8, quota(1)), 1);
        assert_eq!(at_once(8, quota(0)), 1);
        assert_eq!(at_once(1, quota(u64::MAX)), 1);
        assert_eq!(at_once(0, None), 1);
    }
}
