//! Heaps that hold many entries: the smallest is taken out and put in again with a later key, as in
//! a queue of timers. One thread.
//!
//! The other cells of heaps hold few entries, so they measure the lock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use stanchion_lockfree::PriorityQueue;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::heap::{LockedArrayHeap, LockedHeap};

use crate::suite::bench;

/// The entries that a heap holds.
const ENTRIES: [u64; 3] = [100, 10_000, 1_000_000];

/// Measures heaps of small and of large values.
pub(crate) fn measure(criterion: &mut Criterion) {
    for entries in ENTRIES {
        with_values::<1>(criterion, entries);
        with_values::<32>(criterion, entries);
    }
}

/// Measures heaps with values of so many words.
fn with_values<const WORDS: usize>(criterion: &mut Criterion, entries: u64) {
    let title = format!("heaps of {entries} entries, values of {} bytes", 8 * WORDS);
    let mut group = criterion.benchmark_group(title);
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(100));
    group.measurement_time(Duration::from_secs(1));
    let group = &mut group;
    ours::<LockedArrayHeap<u64, _, Barging>, WORDS>(group, "LockedArrayHeap<Barging>", entries);
    ours::<LockedHeap<u64, _, Barging>, WORDS>(group, "LockedHeap<Barging>", entries);
    one(
        group,
        "parking_lot Mutex<BinaryHeap>",
        entries,
        // The largest entry of the standard heap comes first.
        &parking_lot::Mutex::new(BinaryHeap::new()),
        |heap, key| heap.lock().push((Reverse(key), [key; WORDS])),
        |heap| heap.lock().pop().map(|(Reverse(key), value)| (key, value)),
    );
}

fn ours<H, const WORDS: usize>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, entries: u64)
where
    H: PriorityQueue<Key = u64, Value = [u64; WORDS]> + Default,
{
    let put = |heap: &H, key| heap.push(key, [key; WORDS]);
    one(group, name, entries, &H::default(), put, H::pop_min);
}

/// Measures a heap that is empty. It is filled when the first sample is taken.
fn one<H, V>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    entries: u64,
    heap: &H,
    put: impl Fn(&H, u64),
    take: impl Fn(&H) -> Option<(u64, V)>,
) {
    let mut steps = (1..).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
    let mut missing = entries as usize;
    bench(group, name, |bencher| {
        steps.by_ref().take(std::mem::take(&mut missing)).for_each(|key| put(heap, key));
        bencher.iter(|| {
            let (key, _) = black_box(take(heap)).expect("the heap is full");
            put(heap, key + steps.next().unwrap_or(0));
        });
    });
}
