//! Tests how many processors a process may use, in processes of all kinds. Each case is a child of
//! its own, because the answer is kept.
#![cfg(all(target_os = "linux", not(miri)))]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use stanchion_alone::alone_with;
use stanchion_machine::topology::{pin, processors, usable};

/// Restricts thread `thread` of this process, the calling one if 0, to `processor`.
fn restrict(thread: libc::pid_t, processor: usize) -> std::io::Result<()> {
    let bits = usize::BITS as usize;
    let mut mask = [0_usize; 128];
    mask[processor / bits] = 1 << (processor % bits);
    // SAFETY: the kernel reads no more than the array.
    let result =
        unsafe { libc::sched_setaffinity(thread, size_of_val(&mask), mask.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Runs `body` in a child process that runs the test `name` alone; `begin` runs in the child before
/// its program starts.
fn in_child(name: &str, begin: fn(usize) -> std::io::Result<()>, body: fn()) {
    let first = processors()[0];
    let prepare = |child: &mut Command| {
        // SAFETY: `begin` makes one system call, and neither allocates nor locks.
        unsafe { child.pre_exec(move || begin(first)) };
    };
    alone_with(name, prepare, body);
}

fn as_it_is(_: usize) -> std::io::Result<()> {
    Ok(())
}

#[test]
fn a_process_that_was_started_with_one_processor_has_one() {
    // As `taskset` does.
    let one = |processor| restrict(0, processor);
    in_child("a_process_that_was_started_with_one_processor_has_one", one, || {
        assert_eq!(usable(), 1);
        assert_eq!(thread::spawn(usable).join().unwrap(), 1);
    });
}

#[test]
fn a_process_whose_every_worker_is_pinned_has_all_its_processors() {
    in_child("a_process_whose_every_worker_is_pinned_has_all_its_processors", as_it_is, || {
        let all = processors();
        for &processor in &all {
            let worker = thread::spawn(move || {
                let _pinned = pin(processor).unwrap();
                assert_eq!(processors(), [processor]);
                usable()
            });
            assert_eq!(worker.join().unwrap(), all.len());
        }
    });
}

#[test]
fn a_first_thread_that_is_pinned_does_not_speak_for_the_others() {
    in_child("a_first_thread_that_is_pinned_does_not_speak_for_the_others", as_it_is, || {
        let all = processors();
        let &[first, .., last] = &*all else {
            eprintln!("one processor only: nothing to tell apart");
            return;
        };
        // SAFETY: the call takes no pointer. This test does not run on the first thread.
        restrict(unsafe { libc::getpid() }, first).unwrap();
        let on = |processor| {
            move || {
                let _pinned = pin(processor).unwrap();
                // The answer 1 is kept for a while, and then given up.
                (0..100).map(|_| usable()).max().unwrap()
            }
        };
        assert_eq!(thread::spawn(on(first)).join().unwrap(), 1, "as far as it can tell");
        assert_eq!(thread::spawn(on(last)).join().unwrap(), 2);
        assert_eq!(thread::spawn(on(first)).join().unwrap(), 2, "known by now");
    });
}
