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
    one::<LockedArrayHeap<u64, [u64; WORDS], Barging>>(
        &mut group,
        "LockedArrayHeap<Barging>",
        entries,
    );
    one::<LockedHeap<u64, [u64; WORDS], Barging>>(&mut group, "LockedHeap<Barging>", entries);
    one::<parking_lot::Mutex<BinaryHeap<Entry<WORDS>>>>(
        &mut group,
        "parking_lot Mutex<BinaryHeap>",
        entries,
    );
    group.finish();
}

fn one<H: Held>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, entries: u64) {
    bench(group, name, |bencher| {
        let heap = H::default();
        let mut later = (1..).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        later.by_ref().take(entries as usize).for_each(|key| heap.put(key));
        bencher.iter(|| heap.put(heap.take() + later.next().unwrap_or(0)));
    });
}

/// A heap with values that nothing reads.
trait Held: Default {
    /// Puts in a value with that key.
    fn put(&self, key: u64);
    /// Takes out a value with the smallest key. Returns the key.
    fn take(&self) -> u64;
}

macro_rules! held {
    ($($heap:ident)+) => {$(
        impl<const WORDS: usize> Held for $heap<u64, [u64; WORDS], Barging>
        where
            Self: Default,
        {
            fn put(&self, key: u64) {
                self.push(key, [key; WORDS]);
            }

            fn take(&self) -> u64 {
                black_box(self.pop_min()).map_or(0, |(key, _)| key)
            }
        }
    )+};
}

held!(LockedArrayHeap LockedHeap);

/// An entry of the standard heap: its largest comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry<const WORDS: usize>(Reverse<u64>, [u64; WORDS]);

impl<const WORDS: usize> Held for parking_lot::Mutex<BinaryHeap<Entry<WORDS>>> {
    fn put(&self, key: u64) {
        self.lock().push(Entry(Reverse(key), [key; WORDS]));
    }

    fn take(&self) -> u64 {
        black_box(self.lock().pop()).map_or(0, |entry| entry.0.0)
    }
}
