//! A forked child, in which the runtime's kernel threads are not: that using it says so instead of
//! hanging.
#![cfg(target_os = "linux")]

use std::panic::{self, AssertUnwindSafe};

use stanchion_activations::{Runtime, park};

/// The errors of the child, as the status with which it exits.
fn in_the_child(runtime: Runtime, open: stanchion_activations::JoinHandle<()>) -> i32 {
    if panic::catch_unwind(AssertUnwindSafe(|| runtime.spawn(|| ()))).is_ok() {
        return 1;
    }
    if panic::catch_unwind(AssertUnwindSafe(|| runtime.run(|| ()))).is_ok() {
        return 2;
    }
    if panic::catch_unwind(AssertUnwindSafe(|| open.join())).is_ok() {
        return 3;
    }
    drop(runtime);
    // One of the child's own works.
    match Runtime::new(1) {
        Ok(runtime) if runtime.run(|| 7) == 7 => 0,
        _ => 4,
    }
}

#[test]
fn forked_child_panics_instead_of_waiting_for_workers() {
    let runtime = Runtime::new(2).unwrap();
    let open = runtime.spawn(park);
    let thread = open.thread().clone();
    // Printing may wait for a lock that some thread had which the child does not have.
    panic::set_hook(Box::new(|_| ()));
    // SAFETY: the child uses the allocator, which the C library makes ready for that, and exits
    // without running destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let status = in_the_child(runtime, open);
        // SAFETY: the child ends.
        unsafe { libc::_exit(status) };
    }
    let _ = panic::take_hook();
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    assert!(libc::WIFEXITED(status), "status {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "see `in_the_child`");
    thread.unpark();
    open.join().unwrap();
}
