//! Counts of the paper's claims about balanced free lists.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use proptest::prelude::*;
use stanchion_spin::TestAndSet;

use crate::strategy::WorkerSlot;
use crate::strategy::blocks::{FreeBlocks, Task};

fn lists(slots: usize, threshold: usize) -> (FreeBlocks<TestAndSet>, Vec<WorkerSlot>) {
    // SAFETY: one of each number, for these lists only.
    let each = (0..slots).map(|index| unsafe { WorkerSlot::new(index) });
    (FreeBlocks::new(slots, threshold), each.collect())
}

/// Returns the T that is in force: that of two chains of the same length, of one block at least.
fn kept(threshold: usize) -> usize {
    (threshold / 2).max(1) * 2
}

/// Half of the workers only take, the others only put, a burst of `live` at a time: the paper's
/// worst case. Returns how many blocks there were in the end, and how often the pool was used.
fn one_way(slots: usize, threshold: usize, live: usize, bursts: usize) -> (usize, u64) {
    let (lists, slots) = lists(slots, threshold);
    let (creators, finishers) = slots.split_at(slots.len() / 2);
    let mut in_use = VecDeque::new();
    for burst in 0..bursts {
        for index in 0..live {
            let creator = &creators[(index + burst) % creators.len()];
            in_use.push_back(lists.take(Some(creator)));
        }
        for index in 0..live {
            let finisher = &finishers[(index * 7 + burst) % finishers.len()];
            lists.put(Some(finisher), in_use.pop_front().unwrap());
        }
    }
    (lists.made(), lists.pool_uses())
}

#[test]
fn where_some_create_and_others_finish_memory_is_within_p_times_t_of_a_central_list() {
    for (slots, threshold) in [(2, 1), (2, 2), (4, 4), (4, 64), (8, 31), (20, 20)] {
        let live = 100;
        let (made, _) = one_way(slots, threshold, live, 200);
        let most = live + slots * kept(threshold);
        assert!(made <= most, "{made} blocks at P = {slots}, T = {threshold}: more than {most}");
        // A central list would do with as many as are in use; without balancing there would be 200
        // times as many.
        assert!(made >= live);
    }
}

#[test]
fn the_pool_is_used_once_in_half_a_threshold_of_operations() {
    for (slots, threshold) in [(2, 2), (4, 4), (4, 64), (8, 32), (20, 20)] {
        let (live, bursts) = (100, 200);
        let (_, uses) = one_way(slots, threshold, live, bursts);
        let operations = 2 * live * bursts;
        // Each worker: one use in T/2 operations, and a first one. Growing takes the lock a second
        // time, once a slab: at most one in ten here.
        let most = (operations / (threshold / 2) + slots) * 11 / 10;
        assert!(uses <= most as u64, "{uses} uses at P = {slots}, T = {threshold}: over {most}");
    }
}

#[test]
fn a_worker_that_finishes_what_it_creates_leaves_the_pool_alone() {
    let (lists, slots) = lists(3, 8);
    let slot = Some(&slots[1]);
    lists.put(slot, lists.take(slot));
    let before = lists.pool_uses();
    // Up and down by less than T/2, which begins wherever the lists are.
    for _ in 0..1_000 {
        let held: Vec<_> = (0..4).map(|_| lists.take(slot)).collect();
        held.into_iter().for_each(|block| lists.put(slot, block));
    }
    assert!(lists.pool_uses() - before <= 1, "{} uses", lists.pool_uses() - before);
}

#[test]
fn no_list_keeps_more_than_the_threshold() {
    let (lists, slots) = lists(2, 10);
    let blocks: Vec<_> = (0..1_000).map(|_| lists.take(Some(&slots[0]))).collect();
    let made = lists.made();
    blocks.into_iter().for_each(|block| lists.put(Some(&slots[0]), block));
    // The other gets them all, but for what the first keeps.
    let again: Vec<_> = (0..1_000 - 10).map(|_| lists.take(Some(&slots[1]))).collect();
    assert_eq!(lists.made(), made);
    drop(again);
}

#[test]
fn blocks_go_around_between_workers_and_threads_outside() {
    let (lists, slots) = lists(1, 4);
    for _ in 0..100 {
        let blocks: Vec<_> = (0..20).map(|_| lists.take(None)).collect();
        blocks.into_iter().for_each(|block| lists.put(Some(&slots[0]), block));
        let blocks: Vec<_> = (0..20).map(|_| lists.take(Some(&slots[0]))).collect();
        blocks.into_iter().for_each(|block| lists.put(None, block));
    }
    assert!(lists.made() <= 20 + 2 * 4, "{} blocks for 20", lists.made());
}

#[test]
fn threads_pass_blocks_on_one_way() {
    const BLOCKS: usize = 20_000;
    let (threshold, waiting) = (8, 16);
    let lists: FreeBlocks<TestAndSet> = FreeBlocks::new(4, threshold);
    let finished = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for pair in 0..2 {
            let (sender, receiver) = mpsc::sync_channel::<Task>(waiting);
            let (lists, finished) = (&lists, &finished);
            scope.spawn(move || {
                // SAFETY: the numbers below 2 are these threads'.
                let slot = unsafe { WorkerSlot::new(pair) };
                for value in 0..BLOCKS {
                    let block = lists.take(Some(&slot));
                    // SAFETY: the block is this thread's.
                    unsafe { block.words().write(value) };
                    sender.send(block).unwrap();
                }
            });
            scope.spawn(move || {
                // SAFETY: the numbers from 2 are these threads'.
                let slot = unsafe { WorkerSlot::new(2 + pair) };
                for (value, block) in receiver.iter().enumerate() {
                    // SAFETY: the block is this thread's, and was written.
                    assert_eq!(unsafe { block.words().read() }, value, "used by two");
                    lists.put(Some(&slot), block);
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(finished.into_inner(), 2 * BLOCKS);
    let live = 2 * (waiting + 2);
    assert!(lists.made() <= live + 4 * threshold, "{} blocks", lists.made());
}

proptest! {
    /// Checks that in any order of operations no block is handed out twice, and that there are
    /// never more than P·T + T too many.
    #[test]
    fn no_block_has_two_users(
        threshold in 1_usize..12,
        steps in proptest::collection::vec((0_usize..4, any::<bool>(), 1_usize..9), 1..80),
    ) {
        let (lists, slots) = lists(3, threshold);
        let mut in_use = Vec::new();
        let mut addresses = HashSet::new();
        let mut most = 0;
        for (slot, takes, count) in steps {
            // The fourth is a thread without a slot.
            let slot = slots.get(slot);
            for _ in 0..count {
                if takes {
                    let block = lists.take(slot);
                    prop_assert!(addresses.insert(block.words()));
                    in_use.push(block);
                } else if let Some(block) = in_use.pop() {
                    prop_assert!(addresses.remove(&block.words()));
                    lists.put(slot, block);
                }
            }
            most = most.max(in_use.len());
        }
        prop_assert!(lists.made() <= most + 4 * kept(threshold));
    }
}
