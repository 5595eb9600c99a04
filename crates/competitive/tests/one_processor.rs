//! The default policy in a process that may use one processor: it does not spin, because the holder
//! could not run meanwhile.
#![cfg(all(target_os = "linux", not(miri)))]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use stanchion_alone::alone_with;
use stanchion_competitive::PolicyMutex;
use stanchion_competitive::policy::{Adaptive, Contention, Policy, Wait};

/// [`Adaptive`], and for how long it would have had a waiter spin.
struct Told(Adaptive);

static WAITS: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

impl Policy for Told {
    const INIT: Self = Self(Adaptive::INIT);

    fn threshold(&self, contention: &Contention) -> u64 {
        let threshold = self.0.threshold(contention);
        LONGEST.fetch_max(threshold, SeqCst);
        WAITS.fetch_add(1, SeqCst);
        threshold
    }

    fn adjust(&self, wait: &Wait) {
        self.0.adjust(wait);
    }
}

#[test]
fn a_process_with_one_processor_does_not_spin() {
    static LOCK: PolicyMutex<u32, Told> = PolicyMutex::new(0);

    let processor = stanchion_machine::topology::processors()[0];
    let mut mask = [0_usize; 128];
    mask[processor / 64] = 1 << (processor % 64);
    let restrict = move || {
        // SAFETY: the kernel reads no more than the array.
        let result =
            unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    let prepare = |child: &mut Command| {
        // SAFETY: it makes one system call, and neither allocates nor locks.
        unsafe { child.pre_exec(restrict) };
    };
    alone_with("a_process_with_one_processor_does_not_spin", prepare, || {
        let held = LOCK.lock();
        let waiter = thread::spawn(|| *LOCK.lock() += 1);
        while WAITS.load(SeqCst) == 0 {
            thread::yield_now();
        }
        drop(held);
        waiter.join().unwrap();
        assert_eq!(LONGEST.load(SeqCst), 0);
    });
}
