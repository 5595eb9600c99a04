//! Filters of system calls that the program installs (seccomp).
//!
//! Such a filter lets through what the program itself needs, and may kill it for any other call.
//! The shim needs some calls that the program may not need: to read its mappings, the stack and the
//! switches of a thread, and to ask for numbers. So the shim stands before `prctl` and `syscall`.
//! From the moment that a filter is about to be installed it makes none of these calls. Waits are
//! recorded without them, as far as that is possible.
//!
//! Each such call is made with a [`Permit`]. A thread that installs a filter for all threads waits
//! until no other thread has one, because it could be between its look and its call. Once a filter
//! is there, or may be, the wait for a second one makes no system call either.
//!
//! The count of filters never sinks, unless the kernel refused one. A filter that is installed by
//! an inlined system call is not seen.
//!
//! # Orderings
//!
//! A permit is counted before the filters are looked at, and a filter before the permits are. Both
//! are SeqCst: either the thread with the permit sees the filter, or the thread with the filter
//! sees the permit.

use core::cell::Cell;
use core::ffi::c_long;
use core::hint;
use core::ptr;

use stanchion_competitive::waits::Loss;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Ordering};
use stanchion_machine::fork::generation;

use super::table;

/// The number of counts of permits.
const COUNTS: usize = 32;

/// The number of times that a thread with a filter gives way to threads with permits. A thread that
/// this one has interrupted keeps its permit for good.
const PATIENCE: u32 = 20_000;

/// A count of permits in the lower half, on a cache line of its own. The upper half has the
/// [`generation`]: a child of a fork has none of its parent's permits.
#[repr(align(64))]
struct Count(AtomicU64);

/// The filters of a process, and the permits of its threads.
struct Filters {
    /// The number of filters that were installed, or are about to be. Threads that install them
    /// write it.
    installed: AtomicU32,
    /// The permits. Each thread counts in the one that the address of its memory gives.
    permits: [Count; COUNTS],
}

/// Those of this process.
static FILTERS: Filters = Filters::new();

std::thread_local! {
    /// A byte at an address that no other thread has.
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// The right to make a system call that the program may not make itself.
pub(super) struct Permit(&'static Count);

/// Returns a permit, unless the program has installed a filter.
#[inline]
pub(super) fn permit() -> Option<Permit> {
    FILTERS.permit()
}

/// Returns whether the program has installed a filter.
#[inline]
pub(super) fn is_installed() -> bool {
    FILTERS.is_installed()
}

/// Installs a filter by `call`, which returns -1 if that fails.
#[cold]
#[inline(never)]
pub(super) fn install(call: impl FnOnce() -> c_long) -> c_long {
    let result = FILTERS.install(call);
    if result != -1 {
        table::lose(Loss::Filter);
    }
    result
}

impl Filters {
    const fn new() -> Self {
        let permits = [const { Count(AtomicU64::new(0)) }; COUNTS];
        Self { installed: AtomicU32::new(0), permits }
    }

    #[inline]
    fn is_installed(&self) -> bool {
        // Relaxed: the thread that has installed it sees it, and others ask for a permit.
        self.installed.load(Ordering::Relaxed) != 0
    }

    /// Does the work of `permit`.
    #[inline]
    fn permit(&'static self) -> Option<Permit> {
        if self.is_installed() {
            return None;
        }
        let here = HERE.with(|here| ptr::from_ref(here).addr());
        let mixed = (here as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let count = &self.permits[(mixed >> 32) as usize % COUNTS];
        count.add();
        let permit = Permit(count);
        // SeqCst: see the file's head.
        (self.installed.load(Ordering::SeqCst) == 0).then_some(permit)
    }

    /// Does the work of `install`.
    fn install(&self, call: impl FnOnce() -> c_long) -> c_long {
        // SeqCst: see the file's head.
        let is_first = self.installed.fetch_add(1, Ordering::SeqCst) == 0;
        let mut patience = 0..PATIENCE;
        while self.permits.iter().any(Count::is_used) && patience.next().is_some() {
            if is_first {
                // SAFETY: gives way.
                unsafe { libc::sched_yield() };
            } else {
                hint::spin_loop();
            }
        }
        let result = call();
        if result == -1 {
            // Release: no filter is there that a permit has to see.
            self.installed.fetch_sub(1, Ordering::Release);
        }
        result
    }
}

impl Count {
    /// Counts a permit.
    #[inline]
    fn add(&self) {
        let mine = generation();
        let more = |bits| Some((if is_of(bits, mine) { bits } else { u64::from(mine) << 32 }) + 1);
        // SeqCst: see the file's head. It always succeeds.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::Relaxed, more);
    }

    /// Ends a permit, unless it is one of a parent of this process.
    #[inline]
    fn remove(&self) {
        let mine = generation();
        let less = |bits: u64| (is_of(bits, mine) && bits as u32 > 0).then(|| bits - 1);
        // Release: the call is over. Pairs with the SeqCst load of `is_used`.
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, less);
    }

    /// Returns whether a thread of this process has a permit.
    fn is_used(&self) -> bool {
        // SeqCst: see the file's head.
        let bits = self.0.load(Ordering::SeqCst);
        is_of(bits, generation()) && bits as u32 > 0
    }
}

/// Returns whether a count is of that generation.
#[inline]
const fn is_of(bits: u64, generation: u32) -> bool {
    (bits >> 32) as u32 == generation
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        self.0.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_waits_for_permits_and_ends_them_and_a_refused_one_does_not() {
        static TRIED: Filters = Filters::new();
        assert!(TRIED.permit().is_some() && !TRIED.is_installed());
        assert_eq!(TRIED.install(|| -1), -1);
        assert!(TRIED.permit().is_some());
        let began = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let first = TRIED.permit();
            scope.spawn(|| {
                TRIED.install(|| {
                    began.store(1, Ordering::SeqCst);
                    7
                })
            });
            while !TRIED.is_installed() {
                std::thread::yield_now();
            }
            assert!(TRIED.permit().is_none());
            drop(first);
        });
        assert_eq!(began.load(Ordering::SeqCst), 1);
        assert!(!TRIED.permits.iter().any(Count::is_used));
        assert!(TRIED.permit().is_none() && TRIED.is_installed());
    }

    #[test]
    fn permits_of_a_parent_do_not_count() {
        let parents = u64::from(generation().wrapping_sub(1)) << 32 | 3;
        let count = Count(AtomicU64::new(parents));
        assert!(!count.is_used());
        count.remove();
        assert_eq!(count.0.load(Ordering::Relaxed), parents);
        count.add();
        assert!(count.is_used());
        count.remove();
        assert!(!count.is_used());
        count.remove();
        assert!(!count.is_used());
    }
}
