//! Tests of threads that other threads interrupt and prefer.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::hint::{black_box, spin_loop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;

use stanchion_machine::clock::Deadline;
use stanchion_machine::control::{
    self, Allowed, Interrupted, Place, Preference, Refused, allow, can_interrupt, can_prefer, defer,
};
use stanchion_machine::park;

static_assertions::assert_impl_all!(Place: Send, Sync);
static_assertions::assert_not_impl_any!(Allowed: Send, Sync);
static_assertions::assert_not_impl_any!(control::Deferred: Send, Sync);
static_assertions::assert_not_impl_any!(control::Undisturbed: Send, Sync);

/// Counts interruptions, and stays in them while it is closed.
#[derive(Default)]
struct Gate {
    /// The number of interruptions. The interrupted thread writes it.
    arrived: AtomicU32,
    /// 1 while interruptions stay. The test writes it.
    closed: AtomicU32,
    /// The place in which other threads find the thread.
    place: Place,
}

// SAFETY: `interrupted` uses two atomics and a futex.
unsafe impl Interrupted for Gate {
    fn place(&self) -> &Place {
        &self.place
    }

    fn interrupted(&self) {
        self.arrived.fetch_add(1, SeqCst);
        while self.closed.load(SeqCst) == 1 {
            park::wait(&self.closed, 1, Deadline::NEVER);
        }
        // SAFETY: returns the address of this thread's `errno`.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: valid while the thread lives. The thread must not see the value written here.
        unsafe { errno.write_volatile(libc::EXDEV) };
    }
}

impl Gate {
    fn close(&self) {
        self.closed.store(1, SeqCst);
    }

    fn open(&self) {
        self.closed.store(0, SeqCst);
        park::wake_all(&self.closed);
    }

    fn arrived(&self) -> u32 {
        self.arrived.load(SeqCst)
    }
}

/// Runs `body` on a thread that other threads may interrupt, beside `other`.
fn controlled(body: impl FnOnce(&Gate) + Send, other: impl FnOnce(&Gate, &Place)) {
    can_interrupt().unwrap();
    let gate = Arc::new(Gate::default());
    thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let theirs = Arc::clone(&gate);
        scope.spawn(move || {
            let _allowed = allow(Arc::clone(&theirs)).unwrap();
            send.send(()).unwrap();
            body(&theirs);
        });
        receive.recv().unwrap();
        other(&gate, &gate.place);
    });
}

#[test]
fn a_thread_that_looks_at_nothing_stands_still_and_goes_on() {
    let (turns, done) = (AtomicU64::new(0), AtomicBool::new(false));
    controlled(
        |_| {
            while !done.load(SeqCst) {
                turns.fetch_add(1, SeqCst);
            }
        },
        |gate, place| {
            for stop in 1..=20 {
                gate.close();
                assert!(place.interrupt());
                while gate.arrived() < stop {
                    spin_loop();
                }
                let before = turns.load(SeqCst);
                thread::yield_now();
                assert_eq!(turns.load(SeqCst), before, "stopped");
                gate.open();
                while turns.load(SeqCst) == before {
                    spin_loop();
                }
            }
            done.store(true, SeqCst);
        },
    );
}

#[test]
fn what_is_deferred_is_done_once_when_the_last_guard_goes() {
    let (entered, sent) = (AtomicBool::new(false), AtomicBool::new(false));
    controlled(
        |gate| {
            let outer = defer();
            let inner = defer();
            entered.store(true, SeqCst);
            while !sent.load(SeqCst) {
                spin_loop();
            }
            // This is a system call of this thread's: a signal that was sent is there when it
            // returns.
            thread::yield_now();
            drop(outer);
            assert_eq!(gate.arrived(), 0, "there is another guard");
            drop(inner);
            assert_eq!(gate.arrived(), 1);
            drop(defer());
            assert_eq!(gate.arrived(), 1, "nothing was left to do");
        },
        |_, place| {
            while !entered.load(SeqCst) {
                spin_loop();
            }
            assert!(place.interrupt());
            assert!(place.interrupt(), "an interruption is under way already");
            sent.store(true, SeqCst);
        },
    );
}

#[test]
fn the_interrupted_code_keeps_its_errno() {
    controlled(
        |gate| {
            // SAFETY: returns the address of this thread's `errno`.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            unsafe { *errno = libc::EILSEQ };
            gate.closed.store(2, SeqCst);
            while gate.arrived() == 0 {
                spin_loop();
            }
            // SAFETY: as above. Volatile, because a handler has written it.
            assert_eq!(unsafe { errno.read_volatile() }, libc::EILSEQ);
        },
        |gate, place| {
            while gate.closed.load(SeqCst) != 2 {
                spin_loop();
            }
            place.interrupt();
        },
    );
}

#[test]
fn who_has_left_is_left_alone() {
    can_interrupt().unwrap();
    let [gate, other] = [(); 2].map(|()| Arc::new(Gate::default()));
    let allowed = allow(Arc::clone(&gate)).unwrap();
    assert_eq!(allow(Arc::clone(&other)).unwrap_err(), Refused::Already, "one at a time");
    let theirs = Arc::clone(&gate);
    let refused = thread::spawn(move || allow(theirs).unwrap_err()).join().unwrap();
    assert_eq!(refused, Refused::Already, "one thread a place");
    assert!(gate.place.interrupt() && !other.place.interrupt());
    drop(allowed);
    assert!(!gate.place.interrupt() && !gate.place.prefer(Preference::Ordinary));
    drop(allow(Arc::clone(&other)).unwrap());
    assert_eq!((gate.arrived(), other.arrived()), (1, 0));
    assert_eq!(Arc::strong_count(&gate), 1, "the thread's reference has been dropped");

    let theirs = Arc::clone(&gate);
    let forgetful = thread::spawn(move || std::mem::forget(allow(theirs).unwrap()));
    forgetful.join().unwrap();
    assert!(!gate.place.interrupt(), "a thread that has forgotten its guard leaves when it ends");
    assert_eq!(Arc::strong_count(&gate), 1);
}

/// Threads allocate, begin and end, one after the other in one place, while other threads interrupt
/// the thread that they find there.
#[test]
fn interruptions_meet_the_allocator_and_the_end_of_threads() {
    const LIVES: usize = 60;
    can_interrupt().unwrap();
    let gate = Arc::new(Gate::default());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    gate.place.interrupt();
                    thread::yield_now();
                }
            });
        }
        for _ in 0..LIVES {
            let life = scope.spawn(|| {
                let _allowed = allow(Arc::clone(&gate)).unwrap();
                let before = gate.arrived();
                let mut size = 1;
                while gate.arrived() < before + 3 {
                    black_box(vec![0_u8; size]);
                    size = size * 5 % 70_001;
                }
            });
            life.join().unwrap();
        }
        over.store(true, SeqCst);
    });
    assert!(!gate.place.interrupt());
}

/// Returns the policy of the calling thread.
fn policy() -> i32 {
    // SAFETY: the call only reads.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    i32::try_from(policy).unwrap() & !libc::SCHED_RESET_ON_FORK
}

#[test]
fn a_preferred_thread_starts_ordinary_ones_and_is_one_again_when_told() {
    assert!(matches!(can_prefer(0), Err(Refused::NoLevel { level: 0 })));
    assert!(matches!(can_prefer(100), Err(Refused::NoLevel { level: 100 })));
    match can_prefer(2) {
        Ok(()) => {}
        Err(why @ Refused::NoPermission { .. }) => {
            assert!(why.to_string().contains("RLIMIT_RTPRIO"), "{why}");
            return;
        }
        Err(why) => panic!("{why}"),
    }
    assert_eq!(policy(), libc::SCHED_OTHER, "the trial leaves nothing behind");
    let gate = Arc::new(Gate::default());
    let allowed = allow(Arc::clone(&gate)).unwrap();
    assert!(gate.place.prefer(Preference::Before(2)));
    assert_eq!(policy(), libc::SCHED_FIFO);
    assert_eq!(thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER);
    assert!(gate.place.prefer(Preference::Ordinary));
    assert_eq!(policy(), libc::SCHED_OTHER);
    assert!(control::prefer(Preference::Before(1)));
    drop(allowed);
    assert_eq!(policy(), libc::SCHED_FIFO);
    assert!(control::prefer(Preference::Ordinary));
    assert_eq!(policy(), libc::SCHED_OTHER);
}

/// A thread without privilege cannot clear that flag, so a trial that set it could not be undone.
#[test]
fn a_trial_leaves_the_flag_of_the_policy_as_it_was() {
    fn all_of_it() -> libc::c_long {
        // SAFETY: the call only reads.
        unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
    }
    thread::spawn(|| {
        for before in [all_of_it(), libc::c_long::from(libc::SCHED_RESET_ON_FORK)] {
            // SAFETY: the call takes two numbers and a structure that outlives it.
            unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, before, &raw const NORMAL) };
            assert_eq!(all_of_it(), before);
            // The trial may be refused or not.
            let _ = can_prefer(1);
            assert_eq!(all_of_it(), before);
        }
    })
    .join()
    .unwrap();
}

/// The parameter that the kernel wants beside a policy without levels.
static NORMAL: libc::c_int = 0;

/// The longest time that a child takes beside busy processes.
const MOST_SECONDS: u32 = 600;

/// Runs `body` in a child of `fork`. Returns whether it returns `true` there.
fn in_a_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses the allocator, which the C library makes ready for that, and no lock
    // that another thread of this program holds.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: ends a child that waits for ever.
        unsafe { libc::alarm(MOST_SECONDS) };
        let right = catch_unwind(AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: ends the child, which shares the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's, and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

#[test]
fn a_child_of_fork_finds_no_thread_of_its_parent() {
    let over = AtomicBool::new(false);
    controlled(
        |_| {
            while !over.load(SeqCst) {
                thread::yield_now();
            }
        },
        |gate, place| {
            let none_found = in_a_child(|| {
                let found = place.interrupt() || place.prefer(Preference::Ordinary);
                !found && format!("{place:?}").contains("None")
            });
            let arrived = gate.arrived();
            let still_there = place.interrupt();
            while still_there && gate.arrived() == 0 {
                thread::yield_now();
            }
            over.store(true, SeqCst);
            assert!(none_found && still_there, "{none_found} {still_there}");
            assert_eq!(arrived, 0, "the child has interrupted a thread of its parent");
        },
    );
}

/// The child starts a thread, which it could not do if it had been forked while a thread of another
/// test started.
#[test]
fn a_place_is_free_in_a_child_of_fork() {
    stanchion_alone::alone("a_place_is_free_in_a_child_of_fork", || {
        can_interrupt().unwrap();
        let gate = Arc::new(Gate::default());
        let mut allowed = Some(allow(Arc::clone(&gate)).unwrap());
        let right = in_a_child(|| {
            let empty = !gate.place.interrupt();
            // The thread that forked was in the place. It enters again. The child has a copy of the
            // guard of its first stay, and dropping that does not end the second stay.
            let again = allow(Arc::clone(&gate)).unwrap();
            drop(allowed.take());
            let there = gate.place.interrupt() && gate.arrived() == 1;
            let taken = matches!(allow(Arc::new(Gate::default())), Err(Refused::Already));
            drop(again);
            // Another thread of the child can have it.
            let other = thread::scope(|scope| {
                let other = scope.spawn(|| {
                    let _allowed = allow(Arc::clone(&gate)).unwrap();
                    gate.place.interrupt()
                });
                other.join().unwrap()
            });
            empty && there && taken && other && !gate.place.interrupt()
        });
        assert!(right);
        assert!(gate.place.interrupt(), "the parent's thread is still there");
        assert_eq!(gate.arrived(), 1);
        drop(allowed);
    });
}

/// The test runs in a process of its own, which ignores all signals that would do.
#[test]
fn where_no_signal_is_free_it_is_refused_by_name() {
    stanchion_alone::alone("where_no_signal_is_free_it_is_refused_by_name", || {
        for signal in libc::SIGRTMIN()..=libc::SIGRTMAX() {
            // SAFETY: ignores a signal that no thread sends.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let refused = can_interrupt().unwrap_err();
        assert!(matches!(refused, Refused::NoSignal { .. }));
        assert!(refused.to_string().contains("leave one at its default"), "{refused}");
        let gate = Arc::new(Gate::default());
        let _allowed = allow(Arc::clone(&gate)).unwrap();
        assert!(!gate.place.interrupt());
    });
}

/// A call that a signal would end lasts until it ends by itself, and the interruption comes
/// afterwards.
#[test]
fn no_system_call_of_an_undisturbed_thread_ends_early() {
    let waits = AtomicBool::new(false);
    let sent = AtomicBool::new(false);
    controlled(
        |gate| {
            {
                let _outer = control::undisturbed();
                drop(control::undisturbed());
                waits.store(true, SeqCst);
                let mut signals = 0;
                while !sent.load(SeqCst) || signals < 50 {
                    // SAFETY: the call reads no descriptors.
                    let ended = unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
                    assert_eq!(ended, 0, "it has reached its timeout");
                    signals += 1;
                }
                assert_eq!(gate.arrived(), 0);
            }
            assert_eq!(gate.arrived(), 1, "the interruption was late, and is not lost");
        },
        |_, place| {
            while !waits.load(SeqCst) {
                spin_loop();
            }
            assert!(place.interrupt());
            sent.store(true, SeqCst);
        },
    );
}
