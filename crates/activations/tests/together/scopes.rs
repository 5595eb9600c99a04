//! Scopes: that threads may borrow, and that nothing lets a scope end before they have.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stanchion_activations::{
    Builder, JoinHandle, Runtime, Scope, ScopedJoinHandle, Thread, park, scope, sleep, spawn,
    yield_now,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Runtime: Send, Sync);
assert_impl_all!(Thread: Send, Sync);
assert_impl_all!(JoinHandle<u8>: Send, Sync);
assert_not_impl_any!(JoinHandle<std::rc::Rc<u8>>: Send, Sync);
assert_impl_all!(JoinHandle<std::cell::Cell<u8>>: Send, Sync);
assert_impl_all!(Scope<'static, 'static>: Send, Sync);
assert_impl_all!(ScopedJoinHandle<'static, u8>: Send, Sync);
assert_not_impl_any!(ScopedJoinHandle<'static, std::rc::Rc<u8>>: Send, Sync);

#[test]
fn threads_of_a_scope_write_where_they_were_told() {
    for processors in 1..=4 {
        let runtime = Runtime::new(processors).unwrap();
        let mut numbers = vec![0_usize; 1_000];
        runtime.scope(|s| {
            for (index, number) in numbers.iter_mut().enumerate() {
                s.spawn(move || {
                    if index % 3 == 0 {
                        yield_now();
                    }
                    *number = index;
                });
            }
        });
        assert!(numbers.iter().enumerate().all(|(index, &number)| index == number));
    }
}

#[test]
fn scopes_within_threads_of_scopes() {
    fn sum(numbers: &[u64]) -> u64 {
        if numbers.len() < 4 {
            return numbers.iter().sum();
        }
        let (left, right) = numbers.split_at(numbers.len() / 2);
        scope(|s| {
            let left = s.spawn(|| sum(left));
            sum(right) + left.join().unwrap()
        })
    }
    let numbers: Vec<u64> = (0..1_000).collect();
    for processors in 1..=4 {
        let runtime = Runtime::new(processors).unwrap();
        let total = runtime.scope(|s| s.spawn(|| sum(&numbers)).join().unwrap());
        assert_eq!(total, 499_500);
    }
}

#[test]
fn threads_of_a_scope_spawn_others_in_it() {
    let runtime = Runtime::new(2).unwrap();
    let count = AtomicUsize::new(0);
    runtime.scope(|s| {
        for _ in 0..10 {
            s.spawn(|| {
                for _ in 0..10 {
                    s.spawn(|| count.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 100);
}

#[test]
fn a_panic_of_the_body_waits_for_the_threads() {
    let runtime = Runtime::new(2).unwrap();
    let done = AtomicUsize::new(0);
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.scope(|s| {
            for _ in 0..10 {
                s.spawn(|| {
                    sleep(Duration::from_millis(1));
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
            panic!("of the body");
        })
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"of the body"));
    assert_eq!(done.load(Ordering::Relaxed), 10);
}

#[test]
fn scope_panics_for_a_thread_that_was_not_joined() {
    let runtime = Runtime::new(2).unwrap();
    let done = AtomicUsize::new(0);
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.scope(|s| {
            s.spawn(|| panic!("of a thread"));
            s.spawn(|| {
                yield_now();
                done.fetch_add(1, Ordering::Relaxed);
            });
        });
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"a thread of the scope panicked"));
    assert_eq!(done.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_that_was_joined_is_not() {
    let runtime = Runtime::new(2).unwrap();
    let payload = runtime.scope(|s| s.spawn(|| panic!("of a thread")).join().unwrap_err());
    assert_eq!(payload.downcast_ref(), Some(&"of a thread"));
}

#[test]
fn a_forgotten_handle_of_a_panic_and_of_a_value() {
    let runtime = Runtime::new(2).unwrap();
    let text = String::from("borrowed");
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.scope(|s| {
            core::mem::forget(s.spawn(|| &text));
            core::mem::forget(s.spawn(|| panic!("of a thread")));
        });
    }));
    result.unwrap_err();
}

/// Its drop panics with another one, so many times.
struct Bomb<'a>(u32, &'a AtomicUsize);

impl Drop for Bomb<'_> {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
        if self.0 > 0 {
            // Only what is static can be panicked with.
            panic::panic_any(StaticBomb(self.0 - 1));
        }
    }
}

struct StaticBomb(u32);

impl Drop for StaticBomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic::panic_any(Self(self.0 - 1));
        }
    }
}

#[test]
fn results_and_payloads_that_panic_when_dropped_end_no_scope_early() {
    for processors in 1..=2 {
        let runtime = Runtime::new(processors).unwrap();
        let (dropped, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let result = panic::catch_unwind(AssertUnwindSafe(|| {
            runtime.scope(|s| {
                for _ in 0..5 {
                    // Their handles are dropped before they end, or after.
                    let unwatched = s.spawn(|| {
                        yield_now();
                        Bomb(3, &dropped)
                    });
                    let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(unwatched)))
                        .map_err(core::mem::forget);
                    s.spawn(|| panic::panic_any(StaticBomb(3)));
                    s.spawn(|| {
                        sleep(Duration::from_micros(100));
                        done.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }));
        core::mem::forget(result.unwrap_err());
        assert_eq!(dropped.load(Ordering::Relaxed), 5);
        assert_eq!(done.load(Ordering::Relaxed), 5);
        assert_eq!(runtime.run(|| 1), 1, "the runtime goes on");
    }
}

#[test]
fn unused_closure_and_result_are_dropped_on_the_thread() {
    struct Says(std::sync::mpsc::Sender<Option<String>>);
    impl Drop for Says {
        fn drop(&mut self) {
            yield_now();
            let name = stanchion_activations::current().name().map(String::from);
            self.0.send(name).unwrap();
        }
    }
    let runtime = Runtime::new(1).unwrap();
    let (sends, receives) = std::sync::mpsc::channel();
    let (captured, returned) = (Says(sends.clone()), Says(sends));
    runtime.run(move || {
        // One processor: it ends after its handle.
        drop(Builder::new().name("owner").spawn(move || {
            let _captured = captured;
            returned
        }));
    });
    for _ in 0..2 {
        assert_eq!(receives.recv().unwrap().as_deref(), Some("owner"));
    }
    assert!(receives.recv().is_err());
}

#[test]
fn a_scope_of_a_thread_of_another_runtime_leaves_its_processor() {
    let outer = Runtime::new(1).unwrap();
    let inner = Runtime::new(1).unwrap();
    outer.run(move || {
        let other = spawn(park);
        let mut number = 0;
        inner.scope(|s| {
            s.spawn(|| {
                // It comes to its park only if the scope's waiter leaves the processor.
                other.thread().unpark();
                while !other.is_finished() {
                    sleep(Duration::from_micros(50));
                }
                number = 1;
            });
        });
        assert_eq!(number, 1);
        assert_eq!(inner.run(|| 2), 2);
        drop(inner);
    });
}

#[test]
fn a_handle_of_a_thread_outlives_its_scope() {
    let runtime = Runtime::new(2).unwrap();
    let text = String::from("borrowed");
    let thread = runtime.scope(|s| {
        let handle = s.spawn(|| text.len());
        handle.thread().clone()
    });
    drop(text);
    thread.unpark();
    assert_eq!(thread.name(), None);
}

#[test]
#[should_panic(expected = "`scope` outside of a runtime's threads")]
fn a_free_scope_outside_of_a_runtime() {
    scope(|_| ());
}
