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

use core::cell::Cell;
use core::ffi::c_long;
use core::hint;
use core::ptr;

use stanchion_competitive::waits::Loss;
use stanchion_machine::fork::generation;

use super::permits::{Permit, Permits};
use super::table;

/// The number of counts of permits.
const COUNTS: usize = 32;

/// The number of times that a thread with a filter gives way to threads with permits. A thread that
/// this one has interrupted keeps its permit for good.
const PATIENCE: u32 = 20_000;

/// The filters of this process, and the permits of its threads.
static FILTERS: Filters = Filters::new();

/// The filters of a process, and the permits of its threads. Each thread counts in the one that the
/// address of its memory gives.
type Filters = Permits<COUNTS>;

std::thread_local! {
    /// A byte at an address that no other thread has.
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// Returns the right to make a system call that the program may not make itself, unless the program
/// has installed a filter.
#[inline]
pub(super) fn permit() -> Option<Permit<'static>> {
    // To ask for the generation may need a system call.
    if FILTERS.is_installed() { None } else { FILTERS.permit(index(), generation()) }
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
    let result = install_in(&FILTERS, call);
    if result != -1 {
        table::lose(Loss::Filter);
    }
    result
}

/// Returns the index of the calling thread's count.
#[inline]
fn index() -> usize {
    let here = HERE.with(|here| ptr::from_ref(here).addr());
    let mixed = (here as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize
}

/// Does the work of `install`.
fn install_in(filters: &Filters, call: impl FnOnce() -> c_long) -> c_long {
    let mut patience = 0..PATIENCE;
    let wait = |is_first| {
        if is_first {
            // SAFETY: gives way.
            unsafe { libc::sched_yield() };
        } else {
            hint::spin_loop();
        }
        patience.next().is_some()
    };
    let mut result = -1;
    filters.install(generation(), wait, || {
        result = call();
        result != -1
    });
    result
}

#[cfg(test)]
mod tests {
    use stanchion_machine::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_filter_waits_for_permits_and_ends_them_and_a_refused_one_does_not() {
        static TRIED: Filters = Filters::new();
        assert!(TRIED.permit(index(), generation()).is_some() && !TRIED.is_installed());
        assert_eq!(install_in(&TRIED, || -1), -1);
        assert!(TRIED.permit(index(), generation()).is_some());
        let began = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let first = TRIED.permit(index(), generation());
            scope.spawn(|| {
                install_in(&TRIED, || {
                    began.store(1, Ordering::SeqCst);
                    7
                })
            });
            while !TRIED.is_installed() {
                std::thread::yield_now();
            }
            assert!(TRIED.permit(index(), generation()).is_none());
            drop(first);
        });
        assert_eq!(began.load(Ordering::SeqCst), 1);
        assert!(!TRIED.is_used(generation()));
        assert!(TRIED.permit(index(), generation()).is_none() && TRIED.is_installed());
    }

    #[test]
    fn permits_of_a_parent_do_not_count() {
        let parent = generation().wrapping_sub(1);
        let filters = Filters::new();
        let [first, second] = [(); 2].map(|()| filters.permit(0, parent));
        assert!(filters.is_used(parent) && !filters.is_used(generation()));
        drop(first);
        assert!(filters.is_used(parent));
        let own = filters.permit(0, generation());
        assert!(filters.is_used(generation()));
        drop(second);
        assert!(filters.is_used(generation()), "the parent's permit is not of this count");
        drop(own);
        assert!(!filters.is_used(generation()));
    }
}
