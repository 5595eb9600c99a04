//! Races that ThreadSanitizer must report: only in its build, and each alone, because a report
//! ends the process; `cargo xtask tsan` runs them.
//!
//! A lane that has gone blind would let them pass: one in which every switch of stacks orders all
//! that was before with all that comes after, say. Both threads have been laid aside and taken up
//! again before they race, so they are where no kernel thread's own stack is.
#![cfg(stanchion_tsan)]

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use stanchion_activations::{Runtime, yield_now};

/// Nothing orders two accesses of `plain`. The rest decides which thread comes first.
#[derive(Default)]
struct Shared {
    /// Of eight bytes, because the accesses of as many are remembered together, and only the last
    /// few.
    plain: UnsafeCell<u64>,
    here: AtomicU32,
    turn: AtomicU32,
}

// SAFETY: untrue, which is what is to be reported.
unsafe impl Sync for Shared {}

/// Keeps its processor until it is so: a scheduling point might order what is not to be ordered.
fn wait_for(word: &AtomicU32, value: u32) {
    while word.load(Relaxed) != value {
        std::hint::spin_loop();
    }
}

/// Runs both at the same time, each on a worker of its own.
fn at_once(first: fn(&Shared), second: fn(&Shared)) {
    let runtime = Runtime::new(2).unwrap();
    let shared = Arc::new(Shared::default());
    let threads = [first, second].map(|body| {
        let shared = shared.clone();
        runtime.spawn(move || {
            // A thread that has begun stays on its worker.
            shared.here.fetch_add(1, Relaxed);
            wait_for(&shared.here, 2);
            (0..3).for_each(|_| yield_now());
            body(&shared);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_flag_without_order_publishes_nothing() {
    // More than one round: a thread that has done much since an access is not reported, because its
    // history is short, and waiting is part of it.
    const ROUNDS: u32 = 100;
    at_once(
        |shared| {
            for round in 0..ROUNDS {
                // SAFETY: untrue.
                unsafe { *shared.plain.get() += 1 };
                shared.turn.store(2 * round + 1, Relaxed);
                wait_for(&shared.turn, 2 * round + 2);
            }
        },
        |shared| {
            for round in 0..ROUNDS {
                wait_for(&shared.turn, 2 * round + 1);
                // SAFETY: untrue.
                assert_eq!(unsafe { *shared.plain.get() }, u64::from(round + 1));
                shared.turn.store(2 * round + 2, Relaxed);
            }
        },
    );
}

#[test]
fn two_that_count_without_a_lock() {
    fn count(shared: &Shared) {
        shared.turn.fetch_add(1, Relaxed);
        wait_for(&shared.turn, 2);
        for _ in 0..1_000 {
            // SAFETY: untrue.
            unsafe { *shared.plain.get() += 1 };
        }
    }
    at_once(count, count);
}
