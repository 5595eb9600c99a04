//! Interruptions that have to wait, and those that are carried out at once.
//!
//! | the signal arrives and the thread | then |
//! | --- | --- |
//! | does not allow to be controlled (any more) | nothing |
//! | is in a deferred section, or carries an interruption out | it is marked as pending |
//! | else | it is carried out in the handler |
//!
//! # Invariants
//!
//! 1. Only the thread itself touches its [`Mine`], in ordinary code or in the handler, which
//!    interrupts it. So Relaxed accesses and barriers for the compiler are enough, everywhere here.
//! 2. `current` is null, or points to the record that the thread's membership holds. In a child of
//!    `fork` the record of the thread that forked is passed over: it was not allowed there.
//! 3. An interruption that is pending is carried out by the drop of the last guard, or when the
//!    interruption that is being carried out is done.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence};

use super::record::Record;

struct Mine {
    /// The record of the thread's membership, or null.
    current: AtomicPtr<Record>,
    /// The number of guards.
    deferred: AtomicU32,
    /// An interruption has arrived that was not carried out.
    pending: AtomicBool,
}

std::thread_local! {
    // Needs no destructor, so the handler can use it whenever it comes.
    static MINE: Mine = const {
        Mine {
            current: AtomicPtr::new(ptr::null_mut()),
            deferred: AtomicU32::new(0),
            pending: AtomicBool::new(false),
        }
    };
}

/// Makes the thread's interruptions those of `record`, which outlives that, or of none.
pub(super) fn set_current(record: Option<&Record>) {
    MINE.with(|mine| {
        let record = record.map_or(ptr::null(), ptr::from_ref);
        mine.current.store(record.cast_mut(), Ordering::Relaxed);
        mine.pending.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    });
}

#[inline]
pub(crate) fn defer() {
    MINE.with(|mine| {
        // Relaxed, here and below: Invariant 1.
        let before = mine.deferred.load(Ordering::Relaxed);
        mine.deferred.store(before.wrapping_add(1), Ordering::Relaxed);
        // What follows stays behind it, as a handler sees it.
        compiler_fence(Ordering::SeqCst);
    });
}

#[inline]
pub(crate) fn undefer() {
    MINE.with(|mine| {
        // What came before stays before it, as a handler sees it.
        compiler_fence(Ordering::SeqCst);
        let before = mine.deferred.load(Ordering::Relaxed);
        mine.deferred.store(before.wrapping_sub(1), Ordering::Relaxed);
        // A handler that comes after the store above carries it out itself.
        compiler_fence(Ordering::SeqCst);
        if before == 1 && mine.pending.load(Ordering::Relaxed) {
            mine.catch_up();
        }
    });
}

/// Marks an interruption of the calling thread as pending if its record `is_wanted`; returns
/// whether it is. No signal is needed then: at the end of the caller's deferred section it is
/// carried out.
pub(super) fn interrupt_if(is_wanted: impl FnOnce(&Record) -> bool) -> bool {
    MINE.with(|mine| {
        let here = mine.current().is_some_and(is_wanted);
        if here {
            mine.pending.store(true, Ordering::Relaxed);
        }
        here
    })
}

/// Handles the signal. Async-signal-safe.
pub(super) fn arrived() {
    MINE.with(|mine| {
        let Some(record) = mine.current() else { return };
        record.interrupted.place().0.received();
        if mine.deferred.load(Ordering::Relaxed) > 0 {
            mine.pending.store(true, Ordering::Relaxed);
        } else {
            record.interrupted.interrupted();
        }
    });
}

impl Mine {
    fn current(&self) -> Option<&Record> {
        // SAFETY: Invariant 2: it lives while the pointer is there. Only this thread changes that,
        // and not while it is in here.
        let record = unsafe { self.current.load(Ordering::Relaxed).as_ref() };
        record.filter(|record| record.is_of_this_process())
    }

    /// Carries out what is pending, in ordinary code. A handler that comes in between leaves
    /// another one to do.
    #[cold]
    fn catch_up(&self) {
        while self.pending.load(Ordering::Relaxed) {
            self.deferred.store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.pending.store(false, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if let Some(record) = self.current() {
                record.interrupted.interrupted();
            }
            compiler_fence(Ordering::SeqCst);
            self.deferred.store(0, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
        }
    }
}
