//! Values that are made when they are first asked for, with real threads.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use stanchion_competitive::LazyLock;
use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::common::within;

assert_impl_all!(LazyLock<u32>: Send, Sync, UnwindSafe, RefUnwindSafe, Default);
// The function goes to the thread that calls it; it need not be shared.
assert_impl_all!(LazyLock<u32, Cell<u32>>: Send, Sync);
assert_not_impl_any!(LazyLock<u32, Rc<u32>>: Send, Sync);
assert_not_impl_any!(LazyLock<Cell<u32>>: Sync);
assert_not_impl_any!(LazyLock<std::sync::MutexGuard<'static, u32>>: Send, Sync);

#[test]
fn one_of_many_makes_the_value() {
    within(Duration::from_secs(60), || {
        const THREADS: usize = 8;
        for _ in 0..100 {
            let (runs, start) = (AtomicUsize::new(0), Barrier::new(THREADS));
            let lazy = LazyLock::new(|| {
                runs.fetch_add(1, Relaxed);
                std::thread::yield_now();
                vec![7; 100]
            });
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        assert!(lazy.iter().all(|&seven| seven == 7));
                    });
                }
            });
            assert_eq!(runs.load(Relaxed), 1);
        }
    });
}

#[test]
fn a_panic_uses_the_function_up() {
    let lazy: LazyLock<u32> = LazyLock::new(|| panic!("in the function"));
    for message in ["in the function", "has panicked", "has panicked"] {
        let panic = catch_unwind(|| *lazy).unwrap_err();
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        assert!(text.expect("a text").contains(message));
    }
    assert_eq!(LazyLock::get(&lazy), None);
    assert!(catch_unwind(|| LazyLock::into_inner(lazy).is_ok()).is_err());
}

#[test]
fn a_function_that_asks_for_its_own_value_is_refused() {
    static OWN: LazyLock<u32> = LazyLock::new(|| *OWN + 1);
    assert!(catch_unwind(|| *OWN).is_err());
    assert!(catch_unwind(|| *OWN).is_err());
}

#[test]
fn the_sole_owner_reaches_all_of_it() {
    let mut lazy = LazyLock::new(|| vec![1]);
    assert_eq!(LazyLock::get_mut(&mut lazy), None);
    LazyLock::force_mut(&mut lazy).push(2);
    LazyLock::get_mut(&mut lazy).expect("made").push(3);
    assert_eq!(format!("{lazy:?}"), "LazyLock(Some([1, 2, 3]))");
    assert_eq!(LazyLock::into_inner(lazy).ok(), Some(vec![1, 2, 3]));
    let unused = LazyLock::new(|| 5);
    assert_eq!(LazyLock::into_inner(unused).expect_err("not asked for")(), 5);
    assert_eq!(*LazyLock::<String>::default(), "");
}

#[test]
fn the_value_and_the_function_are_dropped_once() {
    let (value, captured) = (Arc::new(()), Arc::new(()));
    let make = {
        let (value, captured) = (value.clone(), captured.clone());
        move || {
            drop(captured);
            value
        }
    };
    let unused = LazyLock::new(make.clone());
    assert_eq!((Arc::strong_count(&value), Arc::strong_count(&captured)), (3, 3));
    drop(unused);
    let lazy = LazyLock::new(make);
    LazyLock::force(&lazy);
    assert_eq!((Arc::strong_count(&value), Arc::strong_count(&captured)), (2, 1));
    drop(lazy);
    assert_eq!(Arc::strong_count(&value), 1);
    let panics = AssertUnwindSafe(|| {
        let captured = captured.clone();
        let lazy: LazyLock<u32, _> = LazyLock::new(|| {
            let _captured = captured;
            panic!("in the function")
        });
        *lazy
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!(Arc::strong_count(&captured), 1);
}
