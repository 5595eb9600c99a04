//! What is done once, with real threads.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use stanchion_competitive::{Once, OnceLock};
use static_assertions::{assert_impl_all, assert_not_impl_any, const_assert};

mod common;
use common::within;

assert_impl_all!(Once: Send, Sync, UnwindSafe, RefUnwindSafe, Default);
assert_impl_all!(OnceLock<u32>: Send, Sync, UnwindSafe, RefUnwindSafe, Default);
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
    assert_eq!(format!("{:?}", Once::new()), "Once { completed: false }");
}
