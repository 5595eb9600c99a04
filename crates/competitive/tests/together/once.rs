//! Tests of bodies that run once, with real threads.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use stanchion_competitive::{Once, OnceLock, OnceState};
use static_assertions::{assert_impl_all, assert_not_impl_any, const_assert};

use crate::common::within;

assert_impl_all!(Once: Send, Sync, UnwindSafe, RefUnwindSafe, Default);
assert_impl_all!(OnceLock<u32>: Send, Sync, UnwindSafe, RefUnwindSafe, Default, Clone, Eq);
assert_impl_all!(OnceState: Send, Sync, Copy, Eq);
assert_not_impl_any!(OnceLock<f32>: Eq);
assert_impl_all!(OnceLock<Cell<u32>>: Send);
assert_not_impl_any!(OnceLock<Cell<u32>>: Sync);
assert_not_impl_any!(OnceLock<std::rc::Rc<u32>>: Send, Sync);
// `Sync`, but it must not be dropped elsewhere.
assert_not_impl_any!(OnceLock<std::sync::MutexGuard<'static, u32>>: Send, Sync);
const_assert!(size_of::<Once>() == 4);
const_assert!(size_of::<OnceLock<u32>>() == 8);

#[test]
fn one_of_many_does_it() {
    within(Duration::from_secs(60), || {
        const THREADS: usize = 8;
        for _ in 0..200 {
            let (cell, runs) = (OnceLock::new(), AtomicUsize::new(0));
            let start = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        let value = cell.get_or_init(|| {
                            runs.fetch_add(1, Relaxed);
                            std::thread::yield_now();
                            vec![7; 100]
                        });
                        assert!(value.iter().all(|&seven| seven == 7));
                    });
                }
            });
            assert_eq!(runs.load(Relaxed), 1);
        }
    });
}

/// Some fail, some panic, while others wait for them: one succeeds, and all see it.
#[test]
fn failures_are_tried_again() {
    within(Duration::from_secs(60), || {
        const THREADS: usize = 6;
        for _ in 0..100 {
            let (cell, runs) = (OnceLock::new(), AtomicUsize::new(0));
            let start = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        let attempt = AssertUnwindSafe(|| {
                            cell.get_or_try_init(|| match runs.fetch_add(1, Relaxed) {
                                0 | 2 => Err(()),
                                1 => std::panic::resume_unwind(Box::new("in the body")),
                                run => {
                                    std::thread::yield_now();
                                    Ok(run)
                                }
                            })
                            .copied()
                        });
                        if let Ok(Ok(value)) = catch_unwind(attempt) {
                            assert_eq!(value, 3);
                        }
                    });
                }
            });
            // Three of six have failed, so a fourth has come.
            assert_eq!(runs.load(Relaxed), 4);
            assert_eq!(cell.get(), Some(&3));
        }
    });
}

#[test]
fn a_panic_leaves_it_undone() {
    let once = Once::new();
    assert!(catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("in the body")))).is_err());
    assert!(!once.is_completed());
    let mut done = false;
    once.call_once(|| done = true);
    assert!(done && once.is_completed());
    once.call_once(|| unreachable!("done already"));
}

#[test]
fn its_own_body_is_refused() {
    let once = Once::new();
    let again = AssertUnwindSafe(|| once.call_once(|| once.call_once(|| ())));
    let refused = catch_unwind(again).unwrap_err();
    let message = refused.downcast_ref::<String>().expect("a formatted message");
    assert!(message.contains("do not call it from its own body"), "{message}");
    assert!(!once.is_completed());

    let cell = OnceLock::new();
    let again = AssertUnwindSafe(|| *cell.get_or_init(|| *cell.get_or_init(|| 1)));
    assert!(catch_unwind(again).is_err());
    assert_eq!(cell.get(), None);
    assert_eq!(*cell.get_or_init(|| 2), 2);
}

/// Another `Once` in the body is another matter, as are other threads that wait meanwhile.
#[test]
fn bodies_may_nest() {
    within(Duration::from_secs(60), || {
        let (outer, inner) = (Once::new(), Once::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| outer.call_once(|| inner.call_once(std::thread::yield_now)));
            }
        });
        assert!(outer.is_completed() && inner.is_completed());
    });
}

#[test]
fn values_are_dropped_once() {
    let value = Arc::new(());
    let mut cell = OnceLock::from(value.clone());
    assert_eq!(Arc::strong_count(&value), 2);
    assert!(cell.set(value.clone()).is_err());
    assert_eq!(Arc::strong_count(&value), 2);
    assert!(cell.take().is_some() && cell.take().is_none());
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(cell.set(value.clone()).is_ok());
    assert!(cell.get_mut().is_some());
    drop(cell);
    assert_eq!(Arc::strong_count(&value), 1);
    let cell = OnceLock::from(value.clone());
    assert!(cell.into_inner().is_some());
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(OnceLock::<u32>::new().into_inner(), None);
    assert_eq!(OnceLock::<u32>::new().get_mut(), None);
}

#[test]
fn what_it_says_of_itself() {
    let cell = OnceLock::new();
    assert_eq!(format!("{cell:?}"), "OnceLock(None)");
    assert_eq!(cell.set(1), Ok(()));
    assert_eq!(cell.set(2), Err(2));
    assert_eq!(format!("{cell:?}"), "OnceLock(Some(1))");
    assert_eq!(format!("{:?}", Once::new()), "Once { state: New }");
}

fn panic_in(once: &Once) {
    let panics = AssertUnwindSafe(|| once.call_once(|| panic!("in the body")));
    assert!(catch_unwind(panics).is_err());
}

#[test]
fn the_state_is_told() {
    let once = Once::new();
    assert_eq!(once.state(), OnceState::New);
    panic_in(&once);
    assert!(once.state().is_poisoned() && once.state().poisoned() && !once.state().done());
    once.call_once_force(|state| {
        assert_eq!(state, OnceState::Poisoned);
        assert_eq!(once.state(), OnceState::InProgress);
        assert!(!once.is_completed());
    });
    assert!(once.state().is_completed() && once.state().done());
    once.call_once_force(|_| unreachable!("done already"));

    let first = Once::default();
    first.call_once_force(|state| assert_eq!(state, OnceState::New));
    let never = Once::new_completed();
    never.call_once(|| unreachable!("done from the beginning"));
    assert_eq!((first.state(), never.state()), (OnceState::Done, OnceState::Done));
}

/// Returns whether a thread has registered that it sleeps on the word of `once`. Only the size is
/// documented.
fn is_waited_for(once: &Once) -> bool {
    const ASLEEP: u32 = 4;
    // SAFETY: a `Once` is an atomic word (asserted above), and lives.
    let word = unsafe { &*std::ptr::from_ref(once).cast::<std::sync::atomic::AtomicU32>() };
    word.load(Relaxed) & ASLEEP != 0
}

#[test]
fn waiting_runs_nothing_and_ends_when_it_is_done() {
    within(Duration::from_secs(60), || {
        let (once, done) = (Once::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for waits in [Once::wait, Once::wait_force] {
                let (once, done) = (&once, &done);
                scope.spawn(move || {
                    waits(once);
                    assert_eq!(done.load(Relaxed), 1);
                });
            }
            // A waiter sleeps although no body runs, and also goes on when one has been run.
            while !is_waited_for(&once) {
                std::thread::yield_now();
            }
            once.call_once(|| done.store(1, Relaxed));
        });
        once.wait();
        once.wait_force();
    });
}

#[test]
fn a_waiter_sees_a_panic_or_ignores_it() {
    within(Duration::from_secs(60), || {
        let once = Once::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| once.wait())).is_err());
            let patient = scope.spawn(|| once.wait_force());
            while !is_waited_for(&once) {
                std::thread::yield_now();
            }
            panic_in(&once);
            assert!(waiter.join().unwrap(), "a wait that no thread would end has panicked");
            assert!(!patient.is_finished());
            once.call_once(|| ());
            patient.join().unwrap();
        });
    });
}

#[test]
fn a_body_that_waits_for_itself_is_refused() {
    let once = Once::new();
    for waits in [Once::wait, Once::wait_force] {
        let waits = AssertUnwindSafe(|| once.call_once(|| waits(&once)));
        let refused = catch_unwind(waits).unwrap_err();
        let message = refused.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains("do not call it from its own body"), "{message}");
    }
    let cell = OnceLock::<u32>::new();
    let waits = AssertUnwindSafe(|| *cell.get_or_init(|| *cell.wait()));
    assert!(catch_unwind(waits).is_err());
}

#[test]
fn a_cell_is_waited_for() {
    within(Duration::from_secs(60), || {
        let cell = OnceLock::new();
        std::thread::scope(|scope| {
            let waiters = [scope.spawn(|| *cell.wait()), scope.spawn(|| *cell.wait())];
            // A failure and a panic leave them waiting.
            assert_eq!(cell.get_or_try_init(|| Err::<u32, _>("no")), Err("no"));
            let panics = AssertUnwindSafe(|| *cell.get_or_init(|| panic!("in the body")));
            assert!(catch_unwind(panics).is_err());
            assert_eq!(cell.try_insert(5), Ok(&5));
            assert_eq!(waiters.map(|waiter| waiter.join().unwrap()), [5, 5]);
        });
    });
}

#[test]
fn cells_are_filled_compared_and_cloned() {
    let mut cell = OnceLock::new();
    assert_eq!(cell, OnceLock::new());
    assert_eq!(cell.clone().get(), None);
    assert_eq!(cell.get_mut_or_try_init(|| Err::<String, _>(3)), Err(3));
    cell.get_mut_or_init(|| "one".to_owned()).push('!');
    cell.get_mut_or_init(|| unreachable!("there is one")).push('!');
    assert_eq!(cell.try_insert("two".to_owned()), Err((&"one!!".to_owned(), "two".to_owned())));
    let copy = cell.clone();
    assert_eq!(copy, cell);
    assert_eq!(copy, OnceLock::from("one!!".to_owned()));
    assert_ne!(copy, OnceLock::new());
    assert_ne!(copy, OnceLock::from("two".to_owned()));
}
