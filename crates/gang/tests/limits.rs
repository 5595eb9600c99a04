//! Executors under limits of the system: no memory for more threads, no time to waste. Each test
//! runs in a process of its own, which is this program again.
#![cfg(target_os = "linux")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stanchion_alone::{alone, limit_memory, threads};
use stanchion_gang::{GangExecutor, Member, SpawnError};

/// Waits until so many threads are left.
fn wait_for_threads(count: usize) {
    let patience = std::time::Instant::now();
    while threads() != count && patience.elapsed() < Duration::from_secs(30) {
        std::thread::yield_now();
    }
    assert_eq!(threads(), count);
}

/// Returns the processor time that the process has used, in nanoseconds.
fn processor_time() -> u64 {
    let mut usage = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `usage` is alive.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut usage) };
    assert_eq!(done, 0);
    usage.tv_sec as u64 * 1_000_000_000 + usage.tv_nsec as u64
}

#[test]
fn a_gang_that_cannot_have_all_its_threads_has_none() {
    alone("a_gang_that_cannot_have_all_its_threads_has_none", || {
        // Threads that want 1 GiB of address space each. When there is none for the next thread,
        // there is enough left for everything else.
        let executor =
            GangExecutor::builder().processors(64).stack_size(1 << 30).build().expect("a timer");
        executor.spawn(1, |_| Ok(())).expect("one can be had").join().expect("no panic");
        let before = threads();
        limit_memory(7 << 29);
        let error = executor.spawn(64, |_| Ok(())).unwrap_err();
        match &error {
            SpawnError::NoThread { started, asked: 64, .. } => assert!((1..64).contains(started)),
            other => panic!("{other}"),
        }
        assert!(error.to_string().contains("ulimit"), "{error}");
        // The threads that were started for it have gone, the one that was there before has not,
        // and the processors are free.
        wait_for_threads(before);
        assert_eq!(executor.metrics().slots_used, 0);
        let gang =
            executor.spawn(2, |member: &mut Member| member.barrier()).expect("two can be had");
        gang.join().expect("no panic");
        executor.shutdown();
    });
}

#[test]
fn an_idle_executor_uses_no_processor() {
    alone("an_idle_executor_uses_no_processor", || {
        let executor = GangExecutor::builder()
            .processors(2)
            .quantum(Duration::from_micros(200))
            .build()
            .expect("a timer");
        // Two slots have taken turns, and a gang waits for ever: still there is nothing to do.
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let receive = Mutex::new(receive);
        let asleep = AtomicUsize::new(0);
        executor.scope(|scope| {
            let blocked = scope.spawn(1, |member: &mut Member| {
                asleep.fetch_add(1, Ordering::Relaxed);
                Ok(member.blocking(|| receive.lock().expect("not poisoned").recv().is_err()))
            });
            let busy = |member: &mut Member| (0..500).try_for_each(|_| member.barrier());
            let gangs: Vec<_> = (0..3).map(|_| scope.spawn(2, busy).expect("slots")).collect();
            gangs.into_iter().for_each(|gang| drop(gang.join().expect("no panic")));
            while asleep.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            // Whatever still goes on ends in one of the windows. An executor that uses its
            // processors does so in all of them.
            let is_idle = (0..5).any(|_| {
                let before = processor_time();
                std::thread::sleep(Duration::from_millis(300));
                // The sleeping test itself, and what the kernel adds to the thread that it
                // interrupts.
                processor_time() - before < 3_000_000
            });
            assert!(is_idle, "an idle executor used 3 ms and more in each of five spans of 300 ms");
            drop(send);
            assert_eq!(blocked.expect("a slot").join().expect("no panic"), [true]);
        });
        executor.shutdown();
    });
}

#[test]
fn threads_end_with_the_executor() {
    alone("threads_end_with_the_executor", || {
        let before = threads();
        let executor = GangExecutor::new(3).expect("a timer");
        executor
            .spawn(3, |member: &mut Member| member.barrier())
            .expect("free processors")
            .join()
            .expect("ok");
        assert_eq!(threads(), before + 4);
        drop(executor.clone());
        let gang =
            executor.spawn(3, |member: &mut Member| member.barrier()).expect("free processors");
        drop(executor);
        gang.join().expect("gangs that run go on to the end");
        wait_for_threads(before);
    });
}
