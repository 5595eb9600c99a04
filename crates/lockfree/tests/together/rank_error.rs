//! Tests of the distance of `MultiQueue::pop_min` from the smallest, with threads: see the header
//! of `src/heap/multi_queue/mod.rs` for the bounds. Tests that hold a heap for a chosen time are
//! there.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use stanchion_lockfree::heap::MultiQueue;

/// The mean rank error of pops one after another.
fn stated(heaps: usize) -> f64 {
    let heaps = heaps as f64;
    5.0 / 6.0 * heaps - 1.0 + 1.0 / (6.0 * heaps)
}

/// The sum of the rank errors of these pops, of the keys from 0 to `entries`, in this order.
fn sum_of_rank_errors(entries: usize, popped: &[usize]) -> f64 {
    // Counts of entries by key, as sums over ranges (Fenwick).
    let mut left: Vec<usize> = (0..=entries).map(|index| index & index.wrapping_neg()).collect();
    let mut sum = 0;
    for &key in popped {
        let mut index = key;
        while index > 0 {
            sum += left[index];
            index &= index - 1;
        }
        let mut index = key + 1;
        while index <= entries {
            left[index] -= 1;
            index += index & index.wrapping_neg();
        }
    }
    sum as f64
}

fn filled(heaps: usize, entries: usize) -> MultiQueue<usize, ()> {
    let queue = MultiQueue::with_heaps(heaps);
    (0..entries).for_each(|key| queue.push(key, ()));
    queue
}

/// Threads that pop once and end: each begins where the one before was, on the same stack.
#[test]
fn the_rank_error_under_thread_churn_is_at_most_twice_as_stated() {
    const THREADS: usize = 3_000;
    for heaps in [2, 4, 8] {
        let queue = filled(heaps, 2 * THREADS);
        let popped: Vec<usize> = (0..THREADS)
            .map(|_| {
                let pop = || queue.pop_min().expect("there are more entries than threads").0;
                thread::scope(|scope| scope.spawn(pop).join().expect("it only pops"))
            })
            .collect();
        let mean = sum_of_rank_errors(2 * THREADS, &popped) / THREADS as f64;
        println!("{heaps} heaps: {mean:.2}, stated {:.2}", stated(heaps));
        assert!(mean <= 2.0 * stated(heaps), "{heaps} heaps: {mean}");
    }
}

/// Several threads that each start such threads.
#[test]
fn the_rank_error_of_threads_that_come_and_go_together_is_bounded() {
    running(8, 3, |pop| {
        for _ in 0..500 {
            thread::scope(|scope| scope.spawn(pop).join().expect("it only pops"));
        }
    });
}

/// Threads that pop all the time. The system may take the processor away from any of them.
#[test]
fn the_rank_error_of_running_threads_is_bounded() {
    for heaps in [4, 8] {
        running(heaps, 2, |pop| (0..30_000).for_each(|_| pop()));
    }
}

/// Runs threads that call `work` with a way to pop once. The mean rank error is at most twice the
/// stated one, and the part that the preemptions add.
///
/// The time for which a thread was away is counted in pops: those of the others between the
/// beginning and the end of its own.
fn running(heaps: usize, threads: usize, work: impl Fn(&(dyn Fn() + Sync)) + Sync) {
    const ENTRIES: usize = 200_000;
    let queue = filled(heaps, ENTRIES);
    /// The content of an element of the list until its pop has written it.
    const UNKNOWN: usize = usize::MAX;
    let order = AtomicUsize::new(0);
    let keys: Vec<AtomicUsize> = (0..ENTRIES).map(|_| AtomicUsize::new(UNKNOWN)).collect();
    let away: Vec<AtomicUsize> = (0..ENTRIES).map(|_| AtomicUsize::new(0)).collect();
    let pop = || {
        let before = order.load(SeqCst);
        let (key, ()) = queue.pop_min().expect("there are more entries than pops");
        let position = order.fetch_add(1, SeqCst);
        keys[position].store(key, SeqCst);
        away[position].store(position - before, SeqCst);
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&pop));
        }
    });
    let pops = order.into_inner();
    let popped: Vec<usize> = keys.into_iter().take(pops).map(AtomicUsize::into_inner).collect();
    assert!(!popped.contains(&UNKNOWN));
    // A pop holds two heaps.
    let (n, m) = (heaps as f64, 2.0);
    let preempted: f64 = away
        .into_iter()
        .map(|away| {
            let away = away.into_inner() as f64;
            let behind = away * m / (n - m);
            behind * (away + n * behind / m) / 2.0
        })
        .sum();
    let (mean, added) =
        (sum_of_rank_errors(ENTRIES, &popped) / pops as f64, preempted / pops as f64);
    let bound = 2.0 * stated(heaps) + added;
    println!(
        "{heaps} heaps, {threads} threads: {mean:.2}, bound {bound:.2}, {added:.2} by preemption"
    );
    assert!(mean <= bound, "{heaps} heaps, {threads} threads: {mean}, bound {bound}");
}
