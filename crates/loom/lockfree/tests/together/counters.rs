//! Models of the counters and of the cell with links.
//!
//! | model | threads | bound | what |
//! | --- | --- | --- | --- |
//! | `…::two_threads` | 2, one adding twice | none | nothing is lost, numbers are given once |
//! | `…::three_threads_bounded` | 3 | 3 preemptions | the same |
//! | `a_sum_lies_between` | 2 | none | a sharded counter asked while another thread adds |
//! | `two_threads_make_a_segment` | 2 | none | both find no segment |
//! | `a_sum_meets_a_new_segment` | 2 | none | one makes it, the other only asks |
//! | `links::…` | 2 | none | the cell: ABA, publication, a block that is used again |

use stanchion_lockfree_loom::{Counter, FetchAdd, LinkedCell, ShardedCounter};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// Runs a thread for each of `times`, the last of them this one, which adds so many times. Returns
/// the results of each.
fn numbers<C: FetchAdd + Send + Sync + 'static>(counter: C, times: &'static [u64]) {
    let counter = Arc::new(counter);
    let take = |counter: &C, times: u64| -> Vec<u64> {
        (0..times).map(|_| counter.fetch_add(2)).collect()
    };
    let (mine, others) = times.split_last().expect("at least this thread");
    let others: Vec<_> = others
        .iter()
        .map(|&times| {
            let counter = counter.clone();
            thread::spawn(move || take(&counter, times))
        })
        .collect();
    let mut taken = take(&counter, *mine);
    assert!(taken.is_sorted());
    for other in others {
        let theirs = other.join().unwrap();
        assert!(theirs.is_sorted());
        taken.extend(theirs);
    }
    taken.sort_unstable();
    let all: Vec<_> = (0..times.iter().sum()).map(|number| number * 2).collect();
    assert_eq!(taken, all);
    assert_eq!(counter.get(), all.len() as u64 * 2);
}

macro_rules! counters {
    ([] $({ $name:ident: $counter:ty, $($rest:tt)* })+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn two_threads() {
                let body = || numbers(<$counter>::default(), &[2, 1]);
                explore(concat!(stringify!($name), "::two_threads"), Model::new(), body);
            }

            #[test]
            fn three_threads_bounded() {
                let body = || numbers(<$counter>::default(), &[1, 1, 1]);
                explore(
                    concat!(stringify!($name), "::three_threads_bounded"),
                    Model::new().preemptions(3),
                    body,
                );
            }
        }
    )+};
}

stanchion_lockfree_loom::__structures!(counter: counters, lock: stanchion_spin::TestAndSet);

/// The sum has the additions from before the call, and may have those during the call.
#[test]
fn a_sum_lies_between() {
    explore("a_sum_lies_between", Model::new(), || {
        let counter = Arc::new(ShardedCounter::new(1));
        counter.add(10);
        let other = {
            let counter = counter.clone();
            thread::spawn(move || {
                counter.add(100);
            })
        };
        let sum = counter.get();
        assert!(sum == 11 || sum == 111, "{sum}");
        other.join().unwrap();
        assert_eq!(counter.get(), 111);
    });
}

#[test]
fn two_threads_make_a_segment() {
    explore("two_threads_make_a_segment", Model::new(), || {
        let counter = Arc::new(ShardedCounter::new(0));
        let other = {
            let counter = counter.clone();
            thread::spawn(move || counter.add(1))
        };
        counter.add(2);
        let sum = counter.get();
        assert!(sum == 2 || sum == 3, "{sum}");
        other.join().unwrap();
        assert_eq!(counter.get(), 3);
    });
}

/// A thread that only asks may be the first to find a segment that another has just made.
#[test]
fn a_sum_meets_a_new_segment() {
    explore("a_sum_meets_a_new_segment", Model::new(), || {
        let counter = Arc::new(ShardedCounter::new(0));
        let other = {
            let counter = counter.clone();
            thread::spawn(move || counter.add(1))
        };
        let sum = counter.get();
        assert!(sum <= 1, "{sum}");
        other.join().unwrap();
        assert_eq!(counter.get(), 1);
    });
}

mod links {
    use super::*;

    /// One thread stores another value and then the first again. The other linked before that, and
    /// must not store after it: a compare-exchange would.
    #[test]
    fn a_value_that_came_back() {
        explore("links::a_value_that_came_back", Model::new(), || {
            let cell = Arc::new(LinkedCell::new(1));
            let link = cell.load_linked();
            let other = {
                let cell = cell.clone();
                thread::spawn(move || {
                    let first = cell.load_linked();
                    // The link must have been there before the other's store, or else the result
                    // says nothing.
                    first.value() == 1
                        && first.store_conditional(2)
                        && cell.load_linked().store_conditional(1)
                })
            };
            let held = link.validate();
            let stored = link.store_conditional(3);
            assert!(held || !stored, "a link that is broken stays broken");
            assert!(!link.validate(), "either it has stored, or it was broken");
            let came_back = other.join().unwrap();
            assert_eq!(stored, !came_back, "exactly one of the two stored to what they had linked");
            assert_eq!(cell.load(), if stored { 3 } else { 1 });
        });
    }

    /// A thread that loads the value sees the writes before its store: a race-checked cell shows
    /// it.
    #[test]
    fn a_store_publishes() {
        struct Shared {
            /// The cell under test. Written by the storing thread.
            cell: LinkedCell,
            /// The payload. Written by the storing thread, before its store.
            payload: UnsafeCell<u32>,
        }
        // SAFETY: the payload is written before the store and read after it; the model checks that.
        unsafe impl Sync for Shared {}
        // SAFETY: a number.
        unsafe impl Send for Shared {}
        explore("links::a_store_publishes", Model::new(), || {
            let shared = Arc::new(Shared { cell: LinkedCell::new(0), payload: UnsafeCell::new(0) });
            let other = {
                let shared = shared.clone();
                thread::spawn(move || {
                    // SAFETY: no thread looks before the store.
                    shared.payload.with_mut(|payload| unsafe { *payload = 7 });
                    assert!(shared.cell.load_linked().store_conditional(1));
                })
            };
            let link = shared.cell.load_linked();
            if link.value() == 1 {
                // SAFETY: written before the store, and never again.
                assert_eq!(shared.payload.with(|payload| unsafe { *payload }), 7);
            }
            other.join().unwrap();
        });
    }

    /// A cell names one of two blocks of two words. The writer names the other block, and fills the
    /// first one anew. If a reader's link still holds, then the reader has read words that belong
    /// together.
    #[test]
    fn a_block_is_used_again() {
        struct Blocks {
            /// The cell with the number of the current block. Written by the writer.
            named: LinkedCell,
            /// The two blocks. Written by the writer.
            words: [[AtomicU32; 2]; 2],
        }
        explore("links::a_block_is_used_again", Model::new(), || {
            let word = AtomicU32::new;
            let words = [[word(0), word(0)], [word(1), word(1)]];
            let blocks = Arc::new(Blocks { named: LinkedCell::new(0), words });
            let writer = {
                let blocks = blocks.clone();
                thread::spawn(move || {
                    assert!(blocks.named.load_linked().store_conditional(1));
                    // Relaxed: the cell's fences order them.
                    blocks.words[0].iter().for_each(|word| word.store(2, Ordering::Relaxed));
                })
            };
            let link = blocks.named.load_linked();
            // Relaxed: the cell's fences order them.
            let read = [0, 1]
                .map(|word| blocks.words[link.value() as usize][word].load(Ordering::Relaxed));
            if link.validate() {
                assert_eq!(read, [link.value(); 2]);
            }
            writer.join().unwrap();
        });
    }
}
