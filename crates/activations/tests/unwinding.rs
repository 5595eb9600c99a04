//! A thread that waits in the middle of unwinding. The standard library counts panics by kernel thread, and other threads run on that meanwhile: what holds all the same.

use std::panic;
use std::sync::{Arc, mpsc};

use stanchion_activations::{Runtime, current, park, spawn, yield_now};

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
fn others_on_its_kernel_thread_read_as_panicking_and_their_own_panics_are_theirs() {
    let runtime = Runtime::new(1).unwrap();
    let (thread, waiting) = unwinds(&runtime);
    // The one carrier.
    assert!(
        runtime.run(std::thread::panicking),
        "if not, the standard library counts otherwise: say so in the README"
    );
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
    assert!(!runtime.run(std::thread::panicking), "the count is right again");
}

#[test]
fn a_lock_of_the_standard_librarys_that_is_released_meanwhile_is_poisoned_and_one_of_this_crates_is_not()
 {
    let runtime = Runtime::new(1).unwrap();
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
