//! Pools where the system sets limits: no memory for more threads, one processor, no time to waste.
//! Each runs in a process of its own, which is this program again.
#![cfg(target_os = "linux")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use stanchion_alone::{alone, limit_memory, threads};
use stanchion_threadpool::{BuildError, ResizeError, ThreadPool, ThreadPoolBuilder, join};

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Returns a builder of threads that want 1 GiB of address space each. When a thread cannot be had,
/// enough is left for everything else.
fn builder() -> ThreadPoolBuilder {
    ThreadPoolBuilder::new().stack_size(1 << 30)
}

#[test]
fn a_pool_that_cannot_have_all_its_threads_has_none() {
    alone("a_pool_that_cannot_have_all_its_threads_has_none", || {
        let before = threads();
        limit_memory(7 << 29);
        let error = builder().num_threads(64).build().unwrap_err();
        match &error {
            BuildError::Spawn { started, asked: 64, .. } => assert!((1..64).contains(started)),
            other => panic!("{other}"),
        }
        assert!(error.to_string().contains("ask for fewer"), "{error}");
        // A thread that has been joined is in the kernel's list a moment longer.
        let patience = std::time::Instant::now();
        while threads() != before && patience.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert_eq!(threads(), before, "those that had been started have ended");
        let pool = builder().num_threads(2).build().unwrap();
        assert_eq!(pool.install(|| fib(12)), 144);
        pool.shutdown();
    });
}

#[test]
fn a_pool_that_cannot_grow_any_more_says_how_far_it_came() {
    alone("a_pool_that_cannot_grow_any_more_says_how_far_it_came", || {
        let pool = builder().num_threads(1).max_threads(64).build().unwrap();
        limit_memory(7 << 29);
        match pool.set_num_threads(64).unwrap_err() {
            ResizeError::Spawn { started, asked: 64, .. } => {
                assert_eq!(pool.current_num_threads(), started);
                assert_eq!(pool.broadcast(|_| ()).len(), started);
            }
            other => panic!("{other}"),
        }
        assert_eq!(pool.install(|| fib(12)), 144);
        pool.set_num_threads(1).unwrap();
        assert_eq!(pool.install(|| fib(12)), 144);
        pool.shutdown();
    });
}

/// A task says that it blocks, and no spare can be had: it blocks, and the pool has one thread
/// less.
#[test]
fn a_spare_that_cannot_be_had_is_done_without() {
    alone("a_spare_that_cannot_be_had_is_done_without", || {
        let pool = ThreadPoolBuilder::new().num_threads(2).spare_threads(0).build().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        pool.spawn(move || {
            stanchion_threadpool::blocking(|| send.send(()).unwrap());
        });
        receive.recv().unwrap();
        assert_eq!(pool.metrics().active_spares, 0);
        pool.shutdown();
    });
}

/// A bound on what a worker keeps is not a wish for so much memory.
#[test]
fn any_threshold_and_any_stack_size_are_used_or_refused() {
    for threshold in [1, 2, 1 << 20, 1 << 40, usize::MAX - 1, usize::MAX] {
        let pool = ThreadPoolBuilder::new().num_threads(2).threshold(threshold).build().unwrap();
        assert_eq!(pool.install(|| fib(12)), 144);
        pool.scope(|s| (0..10_000).for_each(|_| s.spawn(|_| ())));
        assert!(pool.metrics().blocks < 40_000, "{}", pool.metrics().blocks);
        pool.shutdown();
    }
    for bytes in [usize::MAX, isize::MAX as usize, 1 << 50] {
        let error = ThreadPoolBuilder::new().num_threads(2).stack_size(bytes).build().unwrap_err();
        assert!(matches!(error, BuildError::Spawn { started: 0, .. }), "{bytes}: {error}");
    }
    for pools in [
        ThreadPoolBuilder::new().num_threads(usize::MAX),
        ThreadPoolBuilder::new().num_threads(1).max_threads(usize::MAX),
        ThreadPoolBuilder::new().num_threads(1).spare_threads(usize::MAX),
    ] {
        assert!(matches!(pools.build(), Err(BuildError::TooManyThreads { .. })));
    }
}

#[test]
fn four_workers_share_one_processor() {
    alone("four_workers_share_one_processor", || {
        let first = core_affinity::get_core_ids().expect("the process may run somewhere")[0];
        assert!(core_affinity::set_for_current(first));
        assert_eq!(std::thread::available_parallelism().unwrap().get(), 1);
        assert_eq!(ThreadPool::new(0).unwrap().current_num_threads(), 1);
        let pool = ThreadPool::new(4).unwrap();
        assert_eq!(pool.install(|| fib(18)), 2_584);
        for _ in 0..50 {
            let barrier = Arc::new(Barrier::new(5));
            for _ in 0..4 {
                let barrier = barrier.clone();
                pool.spawn(move || {
                    barrier.wait();
                });
            }
            barrier.wait();
        }
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|s| (0..10).for_each(|n| s.spawn(move |_| assert!(n < 9))));
        }));
        assert!(caught.is_err());
        pool.shutdown();
    });
}

/// Processor time of the whole process.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is alive.
    let got = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(got, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// rayon#642: an idle pool uses the processor. The bound is of processor time, so it does not
/// depend on how long the machine takes.
#[test]
fn rayon_642_an_idle_pool_uses_no_processor_time() {
    alone("rayon_642_an_idle_pool_uses_no_processor_time", || {
        let pool = ThreadPool::new(8).unwrap();
        assert_eq!(pool.install(|| fib(15)), 610);
        while pool.metrics().asleep < 8 {
            std::thread::yield_now();
        }
        // A worker counts as asleep a few steps before it sleeps, and may lose its processor there.
        let is_idle = (0..5).any(|_| {
            let before = used();
            std::thread::sleep(Duration::from_secs(2));
            used() - before < Duration::from_millis(1)
        });
        assert!(is_idle, "an idle pool used 1 ms and more in each of five spans of 2 s");
        pool.shutdown();
    });
}

#[test]
fn four_threads_a_processor_do_the_work_of_one() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let pool = ThreadPool::new(4 * processors).unwrap();
    let threads: Vec<_> = (0..4 * processors)
        .map(|_| {
            let pool = &pool;
            move || assert_eq!(pool.install(|| fib(16)), 987)
        })
        .collect();
    std::thread::scope(|scope| threads.into_iter().for_each(|body| drop(scope.spawn(body))));
    pool.shutdown();
}
