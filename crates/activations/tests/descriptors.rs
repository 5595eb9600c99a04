//! File descriptors: how many a runtime takes, and what it does when there are none. Each test has
//! a process of its own.
#![cfg(target_os = "linux")]

mod alone;

use std::fs::File;
use std::sync::{Arc, Barrier};

use alone::alone;
use stanchion_activations::{Runtime, Tier};

/// More than there are descriptors where the tests limit them.
const THREADS: usize = 60;

/// Allows the process so many descriptors.
fn limit_descriptors(most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the structure is live.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

/// Takes all descriptors that are left.
fn take_all() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Returns the number that the process has.
fn count() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Blocks threads in the kernel until all of them have begun, and the caller has come.
fn all_block_at_once(runtime: &Runtime, threads: usize) {
    all_block_and(runtime, threads, || ());
}

/// Does the same, and calls `meanwhile` when all have begun.
fn all_block_and(runtime: &Runtime, threads: usize, meanwhile: impl FnOnce()) {
    let all = Arc::new(Barrier::new(threads + 1));
    let ends = Arc::new(Barrier::new(threads + 1));
    let blocked: Vec<_> = (0..threads)
        .map(|_| {
            let (all, ends) = (all.clone(), ends.clone());
            runtime.spawn(move || {
                all.wait();
                ends.wait();
            })
        })
        .collect();
    all.wait();
    meanwhile();
    ends.wait();
    blocked.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn threads_that_block_are_found_and_files_can_be_opened_where_descriptors_are_few() {
    alone("threads_that_block_are_found_and_files_can_be_opened_where_descriptors_are_few", || {
        limit_descriptors(24);
        let runtime = Runtime::new(2).unwrap();
        for _ in 0..3 {
            all_block_and(&runtime, THREADS, || {
                let files: Vec<_> = (0..8).map(|_| File::open("/dev/null")).collect();
                assert!(files.iter().all(Result::is_ok), "{files:?}");
            });
        }
    });
}

#[test]
fn threads_that_block_are_found_when_the_program_takes_the_last_descriptor() {
    alone("threads_that_block_are_found_when_the_program_takes_the_last_descriptor", || {
        limit_descriptors(24);
        let runtime = Runtime::new(2).unwrap();
        let files = take_all();
        all_block_at_once(&runtime, THREADS);
        drop(files);
        all_block_at_once(&runtime, THREADS);
    });
}

#[test]
fn threads_that_block_are_found_by_a_runtime_that_never_had_a_descriptor() {
    alone("threads_that_block_are_found_by_a_runtime_that_never_had_a_descriptor", || {
        limit_descriptors(24);
        let files = take_all();
        let runtime = Runtime::new(2).unwrap();
        assert!(matches!(runtime.capabilities().tier, Tier::Heartbeats(_)));
        all_block_at_once(&runtime, THREADS);
        drop(files);
    });
}

#[test]
fn descriptors_do_not_grow_with_the_number_of_threads_that_have_blocked() {
    alone("descriptors_do_not_grow_with_the_number_of_threads_that_have_blocked", || {
        limit_descriptors(400);
        let before = count();
        let runtime = Runtime::builder().processors(2).spare_kernel_threads(300).build().unwrap();
        for threads in [50, 100, 200] {
            all_block_and(&runtime, threads, || {
                let taken = count() - before;
                // Two for the monitor, an eighth for rings, and what is read at this moment.
                assert!(taken <= 2 + 50 + 5, "{taken} descriptors for {threads} blocked threads");
            });
        }
        drop(runtime);
        assert_eq!(count(), before, "all are given back");
    });
}
