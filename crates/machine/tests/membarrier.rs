//! Tests of the asymmetric barrier before and after the process registers, and under system call
//! filters. A registration stays, and so do filters: each test has a process of its own.
#![cfg(all(target_os = "linux", not(miri)))]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use stanchion_alone::{alone, refusal};
use stanchion_machine::asymmetric::{heavy, is_free, light, never_use_membarrier, period};

const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const REFUSE: u32 = refusal(libc::EPERM);

/// Makes `membarrier` return `answer` from now on, in all threads of the process. Returns whether
/// the system has filters.
#[must_use]
fn filter(answer: u32) -> bool {
    stanchion_alone::filter(libc::SYS_membarrier, answer)
}

/// Runs `body` beside a second thread.
fn beside_another(body: impl FnOnce()) {
    let over = AtomicBool::new(false);
    let there = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            there.wait();
            while !over.load(SeqCst) {
                thread::yield_now();
            }
        });
        there.wait();
        let done = catch_unwind(AssertUnwindSafe(body));
        over.store(true, SeqCst);
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Returns what the kernel has registered for this process, if it tells (Linux 6.3).
fn registrations() -> Option<i64> {
    const GET_REGISTRATIONS: libc::c_int = 1 << 9;
    // SAFETY: the call takes numbers only.
    let answer = unsafe { libc::syscall(libc::SYS_membarrier, GET_REGISTRATIONS, 0, 0) };
    (answer >= 0).then_some(answer as i64)
}

/// Waits until the kernel makes barriers: after many heavy fences both sides fence for a while.
fn until_free() {
    let free = (0..10_000).any(|_| {
        heavy();
        is_free() || {
            thread::sleep(Duration::from_millis(5));
            false
        }
    });
    assert!(free, "barriers have not come back");
}

/// Fails if two threads both miss what the other has written.
fn one_of_the_two_sees_the_other(rounds: u32) {
    let (x, y) = (AtomicU32::new(0), AtomicU32::new(0));
    let (begin, end) = (Barrier::new(2), Barrier::new(2));
    let often = AtomicU32::new(0);
    let missed = thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                begin.wait();
                x.store(round, Relaxed);
                light();
                often.store(y.load(Relaxed), SeqCst);
                end.wait();
            }
        });
        let mut missed = Vec::new();
        for round in 1..=rounds {
            begin.wait();
            y.store(round, Relaxed);
            heavy();
            let seldom = x.load(Relaxed);
            end.wait();
            if seldom != round && often.load(SeqCst) != round {
                missed.push(round);
            }
        }
        missed
    });
    assert!(missed.is_empty(), "both missed the other: rounds {missed:?}");
}

#[test]
fn the_first_lights_of_a_process_with_two_threads_register_nothing() {
    alone("the_first_lights_of_a_process_with_two_threads_register_nothing", || {
        assert!([None, Some(0)].contains(&registrations()), "linking has registered the process");
        beside_another(|| {
            // A call of `membarrier` would end the process.
            let _ = filter(KILL);
            (0..1_000).for_each(|_| light());
            assert!(!is_free());
        });
    });
}

#[test]
fn a_program_that_never_sleeps_registers_in_the_end() {
    alone("a_program_that_never_sleeps_registers_in_the_end", || {
        (1..1 << 17).for_each(|_| light());
        assert!(!is_free(), "too early");
        light();
        let by_light = is_free();
        // Where the system has no such barrier, neither function finds one.
        heavy();
        assert_eq!(by_light, is_free());
        if let Some(registered) = registrations() {
            assert!(by_light && registered != 0, "{by_light} {registered:#b}");
        }
    });
}

#[test]
fn the_first_heavy_registers() {
    alone("the_first_heavy_registers", || {
        beside_another(|| {
            light();
            heavy();
        });
        if let Some(registered) = registrations() {
            assert!(is_free() && registered != 0, "{registered:#b}");
        }
    });
}

#[test]
fn a_filter_from_the_start_leaves_fences() {
    alone("a_filter_from_the_start_leaves_fences", || {
        if filter(REFUSE) {
            one_of_the_two_sees_the_other(500);
            assert!(!is_free());
        }
    });
}

#[test]
fn a_barrier_that_is_refused_after_it_was_granted_is_replaced_by_fences() {
    alone("a_barrier_that_is_refused_after_it_was_granted_is_replaced_by_fences", || {
        heavy();
        let granted = is_free();
        one_of_the_two_sees_the_other(500);
        beside_another(|| {
            if granted {
                until_free();
            }
            if filter(REFUSE) {
                // Threads that call at the same time wait for the same 20 ms.
                thread::scope(|scope| {
                    (0..3).for_each(|_| _ = scope.spawn(heavy));
                });
                assert!(!is_free());
            }
        });
        one_of_the_two_sees_the_other(500);
    });
}

#[test]
fn a_process_that_never_uses_the_call_survives_a_filter_that_kills() {
    alone("a_process_that_never_uses_the_call_survives_a_filter_that_kills", || {
        never_use_membarrier();
        let _ = filter(KILL);
        one_of_the_two_sees_the_other(500);
        (0..=1 << 17).for_each(|_| light());
        assert!(!is_free());
    });
}

#[test]
fn a_process_that_has_registered_can_still_do_without() {
    alone("a_process_that_has_registered_can_still_do_without", || {
        heavy();
        never_use_membarrier();
        let _ = filter(KILL);
        one_of_the_two_sees_the_other(500);
        assert!(!is_free());
    });
}

#[test]
fn a_child_of_fork_goes_on_with_the_barrier() {
    alone("a_child_of_fork_goes_on_with_the_barrier", || {
        heavy();
        let free = is_free();
        // SAFETY: the child uses atomics, exits, and allocates nothing.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            heavy();
            let same = is_free() == free;
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!same)) };
        }
        let mut status = 0;
        // SAFETY: the child is this process's, and `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    });
}

#[test]
fn barriers_that_are_too_many_are_left_for_a_while() {
    alone("barriers_that_are_too_many_are_left_for_a_while", || {
        heavy();
        if !is_free() {
            return;
        }
        beside_another(|| {
            let first = period();
            // One after another, they take all of this thread's time.
            assert!((0..10_000_000).any(|_| {
                heavy();
                !is_free()
            }));
            one_of_the_two_sees_the_other(500);
            // The period of fences ends. How long it is, its own tests say.
            assert!((0..10_000).any(|_| {
                thread::sleep(Duration::from_millis(5));
                heavy();
                is_free()
            }));
            assert_ne!(period(), first);
            one_of_the_two_sees_the_other(500);
        });
    });
}
