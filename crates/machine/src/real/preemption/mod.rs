//! Requests on the real machine: a count that the thread's own signal handler reads, and the
//! kernel's slice extension where there is one.
//!
//! # Invariants
//!
//! 1. Only the thread itself touches its [`Asked`], in ordinary code or in a signal handler that
//!    interrupts it. So Relaxed accesses and barriers for the compiler are enough, everywhere here.
//! 2. `lent` is set by a handler that found a request and let the thread go on, and cleared when
//!    the thread has given way.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
))]
mod slice;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
)))]
#[path = "slice_elsewhere.rs"]
mod slice;

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

use crate::preemption::Means;

/// The requests of a thread, and what it got.
struct Asked {
    /// The number of open requests.
    requests: AtomicU32,
    /// The slice is over, and the thread stays on sufferance.
    lent: AtomicBool,
}

std::thread_local! {
    // Needs no destructor, so it can be used while the thread ends.
    static ASKED: Asked =
        const { Asked { requests: AtomicU32::new(0), lent: AtomicBool::new(false) } };
    /// The function by which the thread gives way to its scheduler, if it is attached to one. Read
    /// and written in ordinary code only.
    static GIVE_WAY: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

#[inline]
pub(crate) fn keep() {
    ASKED.with(|asked| {
        // Relaxed, here and below: Invariant 1.
        let before = asked.requests.load(Ordering::Relaxed);
        asked.requests.store(before.wrapping_add(1), Ordering::Relaxed);
        if before == 0 && slice::may_be_there() {
            slice::request();
        }
        // What follows stays behind the request, as a handler sees it.
        compiler_fence(Ordering::SeqCst);
    });
}

#[inline]
pub(crate) fn thank() -> bool {
    ASKED.with(|asked| {
        // What came before stays before the thanks, as a handler sees it.
        compiler_fence(Ordering::SeqCst);
        let before = asked.requests.load(Ordering::Relaxed);
        if before == 0 {
            return false;
        }
        asked.requests.store(before - 1, Ordering::Relaxed);
        if before > 1 {
            return false;
        }
        let yielded = slice::may_be_there() && slice::take_back();
        // A handler that comes after the store above finds no request, and does not lend.
        compiler_fence(Ordering::SeqCst);
        let gave_way = asked.lent.load(Ordering::Relaxed) && give_way();
        yielded || gave_way
    })
}

pub(crate) fn requests() -> u32 {
    ASKED.with(|asked| asked.requests.load(Ordering::Relaxed))
}

pub(crate) fn means() -> Means {
    if GIVE_WAY.get().is_some() {
        Means::Scheduler
    } else if slice::is_there() {
        Means::SliceExtension
    } else {
        Means::None
    }
}

/// Gives way to the scheduler that the calling thread is attached to. Returns whether it did.
#[cold]
fn give_way() -> bool {
    GIVE_WAY.get().is_some_and(|give_way| give_way())
}

pub(crate) fn attach(give_way: fn() -> bool) {
    GIVE_WAY.set(Some(give_way));
}

pub(crate) fn detach() {
    GIVE_WAY.set(None);
    settle();
}

/// Lets the calling thread stay although its slice is over, if it has asked and does not stay
/// already. For a signal handler.
pub(crate) fn lend() -> bool {
    ASKED.with(|asked| {
        let lends =
            asked.requests.load(Ordering::Relaxed) > 0 && !asked.lent.load(Ordering::Relaxed);
        if lends {
            asked.lent.store(true, Ordering::Relaxed);
        }
        lends
    })
}

/// Returns whether the calling thread runs on lent time.
pub(crate) fn is_lent() -> bool {
    ASKED.with(|asked| asked.lent.load(Ordering::Relaxed))
}

/// Notes that the calling thread has given way, or that no other thread wants its processor any
/// more.
pub(crate) fn settle() {
    ASKED.with(|asked| asked.lent.store(false, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_nest_and_thanks_without_one_do_nothing() {
        assert!(!thank(), "nothing was asked");
        keep();
        keep();
        assert_eq!(requests(), 2);
        thank();
        assert_eq!(requests(), 1);
        thank();
        thank();
        assert_eq!(requests(), 0);
    }

    #[test]
    fn a_thread_is_lent_to_once_and_only_if_it_asks() {
        assert!(!lend(), "it has not asked");
        keep();
        assert!(lend());
        assert!(!lend(), "once");
        settle();
        assert!(lend(), "the next slice has its own");
        // No scheduler to give way to.
        assert!(!thank());
        settle();
    }

    #[test]
    fn an_attached_thread_gives_way_once_it_has_taken_its_request_back() {
        std::thread::spawn(|| {
            attach(|| {
                settle();
                true
            });
            assert_eq!(means(), Means::Scheduler);
            keep();
            assert!(lend());
            assert!(thank());
            assert!(!is_lent());
            detach();
            assert_ne!(means(), Means::Scheduler);
        })
        .join()
        .unwrap();
    }
}
