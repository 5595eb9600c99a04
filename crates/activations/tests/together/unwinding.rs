//! Threads that wait in the middle of unwinding. The standard library counts panics by kernel
//! thread, so such a thread keeps its kernel thread to itself, as long as it may.

use std::panic;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use stanchion_activations::{
    JoinHandle, Runtime, current, park, park_timeout, sleep, spawn, yield_now,
};

/// Waits when it is dropped.
struct Waits(mpsc::Sender<stanchion_activations::Thread>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.send(current()).unwrap();
        park();
        assert!(std::thread::panicking(), "its own kernel thread, and its own panic");
    }
}

/// Has a thread of this runtime wait in the middle of unwinding; returns it and how to wake it.
fn unwinds(
    runtime: &Runtime,
) -> (stanchion_activations::JoinHandle<()>, stanchion_activations::Thread) {
    let (sends, receives) = mpsc::channel();
    let thread = runtime.spawn(move || {
        let _waits = Waits(sends);
        panic::panic_any("first");
    });
    (thread, receives.recv().unwrap())
}

#[test]
fn others_do_not_read_as_panicking_and_their_own_panics_are_theirs() {
    for activations in [true, false] {
        let runtime = Runtime::builder().processors(1).activations(activations).build().unwrap();
        let (thread, waiting) = unwinds(&runtime);
        assert!(!runtime.run(std::thread::panicking), "they run on another kernel thread");
        let payload = runtime.spawn(|| panic::panic_any("second")).join().unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"second"));
        let joined = runtime.run(|| {
            let child = spawn(|| panic::panic_any("third"));
            yield_now();
            child.join().unwrap_err()
        });
        assert_eq!(joined.downcast_ref(), Some(&"third"));
        waiting.unpark();
        assert_eq!(thread.join().unwrap_err().downcast_ref(), Some(&"first"));
        assert!(!runtime.run(std::thread::panicking));
    }
}

/// Joins a thread when it is dropped.
struct Joins(Option<JoinHandle<()>>);

impl Drop for Joins {
    fn drop(&mut self) {
        self.0.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_thread_that_unwinds_can_join_one_that_began_on_its_kernel_thread() {
    let runtime = Runtime::new(1).unwrap();
    let thread = runtime.spawn(|| {
        let child = spawn(|| (0..10).for_each(|_| yield_now()));
        // The child begins, here.
        yield_now();
        let _joins = Joins(Some(child));
        panic::panic_any("joins");
    });
    assert_eq!(thread.join().unwrap_err().downcast_ref(), Some(&"joins"));
}

#[test]
fn threads_that_unwind_wait_where_no_other_kernel_thread_can_be_had() {
    for activations in [true, false] {
        let runtime = Runtime::builder()
            .processors(1)
            .spare_kernel_threads(0)
            .activations(activations)
            .build()
            .unwrap();
        let thread = runtime.spawn(|| {
            let _joins = Joins(Some(spawn(|| sleep(Duration::from_millis(1)))));
            panic::panic_any("joins");
        });
        assert_eq!(thread.join().unwrap_err().downcast_ref(), Some(&"joins"));
    }
}

#[test]
fn a_time_ends_the_wait_of_a_thread_that_unwinds() {
    struct Sleeps;
    impl Drop for Sleeps {
        fn drop(&mut self) {
            sleep(Duration::from_millis(1));
            assert!(!park_timeout(Duration::from_millis(1)));
        }
    }
    for activations in [true, false] {
        let runtime = Runtime::builder().processors(2).activations(activations).build().unwrap();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                runtime.spawn(|| {
                    let _sleeps = Sleeps;
                    panic::panic_any("sleeps");
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap_err().downcast_ref(), Some(&"sleeps"));
        }
    }
}

#[test]
fn a_thread_that_waits_for_ever_while_it_unwinds_is_reported() {
    let runtime = Runtime::new(1).unwrap();
    let (thread, waiting) = unwinds(&runtime);
    let stalled = loop {
        if let Some(stalled) = runtime.stalled() {
            break stalled;
        }
        std::thread::yield_now();
    };
    assert_eq!(stalled.waiting(), 1);
    waiting.unpark();
    assert!(thread.join().is_err());
}

#[test]
fn one_that_began_on_its_kernel_thread_goes_on_after_a_while_and_poisons_what_it_releases() {
    // With activations they would not share a kernel thread.
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    let theirs = Arc::new(std::sync::Mutex::new(1));
    let ours = Arc::new(stanchion_activations::sync::Mutex::new(1));
    let holds = {
        let (theirs, ours) = (theirs.clone(), ours.clone());
        runtime.spawn(move || {
            let _guards = (theirs.lock().unwrap(), ours.lock());
            park();
        })
    };
    // It holds them before the other begins to unwind.
    runtime.run(|| ());
    let (thread, waiting) = unwinds(&runtime);
    holds.thread().unpark();
    holds.join().unwrap();
    assert!(theirs.is_poisoned(), "if not, the standard library has changed: say so in the README");
    assert_eq!(*ours.lock(), 1);
    waiting.unpark();
    assert!(thread.join().is_err());
}

#[test]
fn a_runtime_that_is_dropped_while_its_owner_unwinds_is_not_waited_for() {
    let (sends, receives) = mpsc::channel();
    let unwound = panic::catch_unwind(|| {
        let runtime = Runtime::new(2).unwrap();
        let parked = runtime.spawn(park);
        sends.send(parked).unwrap();
        panic::panic_any("owner");
    });
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"owner"));
    // The thread is still there, and can go on.
    let parked = receives.recv().unwrap();
    parked.thread().unpark();
    parked.join().unwrap();
}
