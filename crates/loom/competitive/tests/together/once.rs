//! Models of initialization: one thread does it, all threads see it, another thread tries again
//! after a failure, and no thread sleeps for ever.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use stanchion_competitive_loom::{LazyLock, Once, OnceLock};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};

/// A payload that is written once, under loom's race checker.
struct Deed(Once, UnsafeCell<u32>);

// SAFETY: changed by the one thread that does it, read afterwards. The models check that.
unsafe impl Sync for Deed {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Deed {}

impl Deed {
    fn new() -> Arc<Self> {
        Arc::new(Self(Once::new(), UnsafeCell::new(0)))
    }

    fn run(&self) {
        self.0.call_once(|| self.add_one());
        assert_eq!(self.count(), 1);
    }

    fn add_one(&self) {
        // SAFETY: only one does it; if that is not so, the cell reports it.
        self.1.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> u32 {
        // SAFETY: it is done.
        self.1.with(|count| unsafe { *count })
    }
}

#[test]
fn once_two_threads() {
    explore("once_two_threads", Model::new(), || {
        let deed = Deed::new();
        let other = beside(&deed, Deed::run);
        deed.run();
        other.join().unwrap();
        assert!(deed.0.is_completed());
    });
}

#[test]
fn once_three_threads_bounded() {
    explore("once_three_threads_bounded", Model::new().preemptions(2).choices(1), || {
        let deed = Deed::new();
        let others = [beside(&deed, Deed::run), beside(&deed, Deed::run)];
        deed.run();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// A thread that only looks sees either nothing or all of it.
#[test]
fn once_is_looked_at() {
    explore("once_is_looked_at", Model::new(), || {
        let deed = Deed::new();
        let other = beside(&deed, Deed::run);
        if deed.0.is_completed() {
            assert_eq!(deed.count(), 1);
        }
        other.join().unwrap();
    });
}

/// A thread that asks how far it is sees nothing, or all of it.
#[test]
fn once_its_state_is_looked_at() {
    explore("once_its_state_is_looked_at", Model::new(), || {
        let deed = Deed::new();
        let other = beside(&deed, Deed::run);
        if deed.0.state().is_completed() {
            assert_eq!(deed.count(), 1);
        }
        other.join().unwrap();
    });
}

/// The first thread to run fails. A thread that waited for it runs the body again, and sees the
/// writes of the first.
fn fail_first(cell: &(OnceLock<u32>, UnsafeShared), may_fail: bool) {
    let got = cell.0.get_or_try_init(|| {
        let before = cell.1.add_one();
        if may_fail && before == 0 { Err(()) } else { Ok(before + 1) }
    });
    if let Ok(&value) = got {
        assert!(value == 1 || value == 2);
    } else {
        assert!(may_fail);
    }
}

/// Counts the runs of a body, which exclude each other.
struct UnsafeShared(UnsafeCell<u32>);

// SAFETY: touched by bodies only, of which one runs at a time. The models check that.
unsafe impl Sync for UnsafeShared {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for UnsafeShared {}

impl UnsafeShared {
    fn add_one(&self) -> u32 {
        self.0.with_mut(|runs| {
            // SAFETY: one body runs at a time; if that is not so, the cell reports it.
            unsafe { *runs += 1 };
            // SAFETY: as above.
            unsafe { *runs - 1 }
        })
    }
}

#[test]
fn once_a_failure_is_tried_again() {
    explore("once_a_failure_is_tried_again", Model::new(), || {
        let cell = Arc::new((OnceLock::new(), UnsafeShared(UnsafeCell::new(0))));
        let other = beside(&cell, |cell| fail_first(cell, false));
        fail_first(&cell, true);
        other.join().unwrap();
        assert!(cell.0.get().is_some());
    });
}

#[test]
fn once_a_failure_among_three_bounded() {
    explore("once_a_failure_among_three_bounded", Model::new().preemptions(2).choices(1), || {
        let cell = Arc::new((OnceLock::new(), UnsafeShared(UnsafeCell::new(0))));
        let others = [
            beside(&cell, |cell| fail_first(cell, false)),
            beside(&cell, |cell| fail_first(cell, true)),
        ];
        fail_first(&cell, true);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(cell.0.get().is_some());
    });
}

/// One of two values is put in, and the other is given back; both threads see the same one.
#[test]
fn once_lock_is_set_once() {
    let model = Model::new();
    explore("once_lock_is_set_once", model, || {
        let cell = Arc::new(OnceLock::new());
        let other = beside(&cell, |cell: &OnceLock<Box<u32>>| cell.set(Box::new(1)).is_ok());
        let seen = cell.get().map(|value| **value);
        let mine = cell.set(Box::new(2)).is_ok();
        let value = **cell.get().expect("set by one or the other");
        let others = other.join().unwrap();
        assert!(mine != others);
        assert_eq!(value, if mine { 2 } else { 1 });
        assert!(seen.is_none_or(|seen| seen == 1));
    });
}

/// A thread that comes later does not count the same again.
#[test]
fn once_lock_get_or_init() {
    explore("once_lock_get_or_init", Model::new(), || {
        let cell = Arc::new((OnceLock::new(), AtomicU32::new(0)));
        let init = |cell: &(OnceLock<u32>, AtomicU32)| {
            *cell.0.get_or_init(|| cell.1.fetch_add(1, Ordering::Relaxed) + 7)
        };
        let other = beside(&cell, init);
        assert_eq!(init(&cell), 7);
        assert_eq!(other.join().unwrap(), 7);
        assert_eq!(cell.1.load(Ordering::Relaxed), 1);
    });
}

/// A waiter that runs nothing itself is woken when it is done, and sees all of it.
#[test]
fn once_is_waited_for_bounded() {
    explore("once_is_waited_for_bounded", Model::new().preemptions(3).choices(1), || {
        let deed = Deed::new();
        let waiter = beside(&deed, |deed| {
            deed.0.wait();
            assert_eq!(deed.count(), 1);
        });
        deed.run();
        waiter.join().unwrap();
    });
}

#[test]
fn once_is_waited_for_by_two_bounded() {
    let model = Model::new().preemptions(1).choices(1);
    explore("once_is_waited_for_by_two_bounded", model, || {
        let deed = Deed::new();
        let waits = |deed: &Deed| {
            deed.0.wait_force();
            assert_eq!(deed.count(), 1);
        };
        let waiters = [beside(&deed, waits), beside(&deed, waits)];
        deed.run();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// Returns a payload that is poisoned: the first body has changed it and then panicked.
///
/// The panic comes before other threads begin. Loom's threads share one thread of the system, and
/// so one mark of unwinding, which poisons the mutex of the table of sleepers.
fn poisoned() -> Arc<Deed> {
    let deed = Deed::new();
    let panics = AssertUnwindSafe(|| {
        deed.0.call_once(|| {
            deed.add_one();
            resume_unwind(Box::new(()));
        });
    });
    assert!(catch_unwind(panics).is_err());
    assert!(deed.0.state().is_poisoned());
    deed
}

/// A body has panicked, and a thread waits for the end whatever happens: the next body ends it.
#[test]
fn once_a_forced_wait_outlasts_a_panic_bounded() {
    let model = Model::new().preemptions(3).choices(1);
    explore("once_a_forced_wait_outlasts_a_panic_bounded", model, || {
        let deed = poisoned();
        let waiter = beside(&deed, |deed| {
            deed.0.wait_force();
            assert_eq!(deed.count(), 2);
        });
        deed.0.call_once_force(|state| {
            assert!(state.is_poisoned());
            deed.add_one();
        });
        waiter.join().unwrap();
    });
}

/// A thread that waits after a panic panics, or sees that another thread has done it.
#[test]
fn once_a_wait_after_a_panic_ends() {
    explore("once_a_wait_after_a_panic_ends", Model::new(), || {
        let deed = poisoned();
        let waiter = beside(&deed, |deed| {
            if deed.0.state().is_poisoned() {
                return;
            }
            deed.0.wait();
            assert_eq!(deed.count(), 2);
        });
        deed.0.call_once(|| deed.add_one());
        waiter.join().unwrap();
    });
}

/// Two threads try again after a panic: one of them runs the body, and sees that the first
/// panicked.
#[test]
fn once_one_of_two_is_told_of_a_panic() {
    explore("once_one_of_two_is_told_of_a_panic", Model::new(), || {
        let deed = poisoned();
        let body = |deed: &Deed| {
            let mut told = false;
            deed.0.call_once_force(|state| {
                told = state.is_poisoned();
                deed.add_one();
            });
            assert_eq!(deed.count(), 2);
            told
        };
        let other = beside(&deed, body);
        let mine = body(&deed);
        assert!(mine != other.join().unwrap());
    });
}

/// One thread takes the function out and makes the value; both see it.
#[test]
fn lazy_lock_is_made_once() {
    explore("lazy_lock_is_made_once", Model::new(), || {
        let runs = Arc::new(AtomicU32::new(0));
        let lazy = {
            let runs = runs.clone();
            Arc::new(LazyLock::new(move || Box::new(runs.fetch_add(1, Ordering::Relaxed) + 7)))
        };
        let other = {
            let lazy = lazy.clone();
            thread::spawn(move || **LazyLock::force(&lazy))
        };
        assert_eq!(***lazy, 7);
        assert_eq!(other.join().unwrap(), 7);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

/// A cell's waiter sleeps through a failure, and sees the value.
#[test]
fn once_lock_is_waited_for_through_a_failure_bounded() {
    let model = Model::new().preemptions(3).choices(1);
    explore("once_lock_is_waited_for_through_a_failure_bounded", model, || {
        let cell = Arc::new(OnceLock::new());
        let waiter = beside(&cell, |cell: &OnceLock<Box<u32>>| **cell.wait());
        assert!(cell.get_or_try_init(|| Err(())).is_err());
        assert_eq!(cell.try_insert(Box::new(7)), Ok(&Box::new(7)));
        assert_eq!(waiter.join().unwrap(), 7);
    });
}
