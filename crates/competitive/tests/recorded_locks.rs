//! Tests of a recorded lock's first wait, and of the counts that a forked child finds of its
//! parent.
#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stanchion_competitive::policy::{Adaptive, Policy, Wait};
use stanchion_competitive::waits::{self, Observation, Record, Recorder, Waits as _};
use stanchion_competitive::{PolicyMutex, RawPolicyMutex};

/// Counts the allocations of threads that ask for it.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// The number of allocations that this thread has made since it asked; `None` if it has not.
    static ALLOCATIONS: Cell<Option<u32>> = const { Cell::new(None) };
}

// SAFETY: the system's allocator does the work. A `Cell` without a destructor may always be used.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get().map(|count| count + 1)));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn allocations(body: impl FnOnce()) -> u32 {
    ALLOCATIONS.set(Some(0));
    body();
    ALLOCATIONS.take().expect("set above")
}

type Recorded = PolicyMutex<(), Recorder<Adaptive>>;

fn recorded(name: &'static str) -> Recorded {
    PolicyMutex::from_raw(RawPolicyMutex::with_policy(Recorder::named(name)), ())
}

#[test]
fn the_first_recorded_wait_allocates_nothing() {
    loop {
        let lock = recorded("first");
        let comes = AtomicBool::new(false);
        let allocated = std::thread::scope(|scope| {
            let held = lock.lock();
            let waiter = scope.spawn(|| {
                allocations(|| {
                    comes.store(true, Ordering::Release);
                    drop(lock.lock());
                })
            });
            while !comes.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(5));
            drop(held);
            waiter.join().expect("the waiter ends")
        });
        assert_eq!(allocated, 0);
        // It may have come too late to wait.
        if lock.waits().count() == 1 {
            break;
        }
    }
}

/// Runs `body` in a child and returns whether it ended well.
#[must_use]
fn in_child(body: impl FnOnce()) -> bool {
    /// Ends the child even if `body` panics: the frames that it would unwind to belong to the
    /// parent.
    struct Exit(i32);

    impl Drop for Exit {
        fn drop(&mut self) {
            // SAFETY: ends the process.
            unsafe { libc::_exit(self.0) }
        }
    }

    // SAFETY: the child has one thread, which does only what the tests need: the C library makes
    // its allocator usable there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut exit = Exit(1);
        body();
        exit.0 = 0;
        drop(exit);
    }
    let began = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: writes to `status`.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            return status == 0;
        }
        if began.elapsed() > Duration::from_secs(40) {
            // SAFETY: a child that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_forked_child_goes_on_with_the_counts_of_its_parent() {
    let wait = Wait::new(900, 0, 0, 5_000);
    let observed = Observation { length_ns: 900, ..Observation::default() };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Slots and names are taken and given back all the time.
        for thread in 0..3 {
            let done = &done;
            scope.spawn(move || {
                for round in 0_u32.. {
                    let recorder = Recorder::<Adaptive>::named("parent's");
                    recorder.adjust(&wait);
                    if round % 64 == 0 {
                        let name = format!("{thread} {}", round / 64 % 40);
                        Record::register(&name).add(&observed);
                    }
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let all_end = (0..40).all(|_| {
            let before = waits::snapshot();
            let ends = in_child(|| {
                let recorder = Recorder::<Adaptive>::named("child's");
                (0..10).for_each(|_| recorder.adjust(&wait));
                Record::register("parent's").add(&observed);
                let recording = waits::snapshot();
                assert_eq!(recording.lock("child's").map(|waits| waits.count()), Some(10));
                for (name, waits) in &before.locks {
                    let now = recording.lock(name).expect("a name stays").count();
                    // A count that a thread was moving at the fork, from a lock to its name, is
                    // lost.
                    assert!(now + 3 >= waits.count(), "{name}: {now} of {}", waits.count());
                }
            });
            ends && waits::snapshot().lock("child's").is_none()
        });
        done.store(true, Ordering::Relaxed);
        assert!(all_end);
    });
}
