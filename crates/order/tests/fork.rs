//! A program that forks while other threads record.

#![cfg(target_os = "linux")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use stanchion_alone::{alone, in_a_fork};
use stanchion_order::{Identity, Mode, is_switched_on, report, switch_on};

/// Takes two new locks, one inside of the other: the second one takes the record.
fn take_new_pair() {
    let pair = [Identity::new(), Identity::new()];
    for lock in &pair {
        lock.acquiring(Mode::Exclusive);
        lock.acquired(Mode::Exclusive);
    }
    pair.iter().for_each(|lock| lock.released(Mode::Exclusive));
}

unsafe extern "C" {
    /// Registers functions for before a fork, and after it in the parent and in the child.
    safe fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// True if a lock got an entry in the handler below.
static WAS_RECORDED: AtomicBool = AtomicBool::new(false);

/// Takes a new lock. A lock without an entry shows none.
extern "C" fn take_new_lock() {
    let lock = Identity::new();
    lock.acquired(Mode::Exclusive);
    WAS_RECORDED.store(format!("{lock:?}").contains("Some"), Ordering::Relaxed);
    lock.released(Mode::Exclusive);
}

#[test]
fn a_handler_of_forks_that_was_registered_earlier_is_not_recorded() {
    alone("a_handler_of_forks_that_was_registered_earlier_is_not_recorded", || {
        assert_eq!(pthread_atfork(None, None, Some(take_new_lock)), 0);
        switch_on();
        take_new_lock();
        assert!(WAS_RECORDED.load(Ordering::Relaxed), "the parent is on");
        in_a_fork(|| assert!(!WAS_RECORDED.load(Ordering::Relaxed)));
        WAS_RECORDED.store(false, Ordering::Relaxed);
        take_new_lock();
        assert!(WAS_RECORDED.load(Ordering::Relaxed), "the parent goes on");
    });
}

#[test]
fn a_forked_child_waits_for_no_thread_of_its_parent() {
    alone("a_forked_child_waits_for_no_thread_of_its_parent", || {
        switch_on();
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    take_new_pair();
                }
            });
            for _ in 0..200 {
                let known = Identity::new();
                known.acquired(Mode::Exclusive);
                known.released(Mode::Exclusive);
                in_a_fork(|| {
                    switch_on();
                    assert!(!is_switched_on());
                    take_new_pair();
                    // The other thread may have had the record when the process forked.
                    drop(known);
                    assert_eq!(report().locks, 0);
                });
            }
            has_ended.store(true, Ordering::Relaxed);
        });
        take_new_pair();
        assert!(is_switched_on() && report().locks >= 2, "the parent goes on");
    });
}
