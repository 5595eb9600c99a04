//! Hand-made histories. [`random`] compares the search with the definition.

mod history;
mod random;

use super::*;
use history::{Act, Found, History};

/// Returns the cycles of acts in this order.
fn found(acts: &[Act]) -> Found {
    let mut history = History::default();
    for &act in acts {
        assert!(history.play(act), "the history does not hold together: {act:?}");
    }
    history.found
}

/// A blocking exclusive acquisition.
fn lock(thread: u64, lock: u64) -> Act {
    Act::Take { thread, lock, mode: Mode::Exclusive, blocks: true }
}

/// A blocking shared acquisition.
fn read(thread: u64, lock: u64) -> Act {
    Act::Take { thread, lock, mode: Mode::Shared, blocks: true }
}

/// An acquisition that does not block.
fn attempt(thread: u64, lock: u64) -> Act {
    Act::Take { thread, lock, mode: Mode::Exclusive, blocks: false }
}

/// The release of all locks of a thread.
fn release(thread: u64) -> Act {
    Act::ReleaseAll { thread }
}

fn cycle(locks: &[u64], firm: bool) -> Found {
    Found::from([(locks.to_vec(), firm)])
}

#[test]
fn two_threads_in_opposite_orders_are_a_cycle() {
    let acts = [lock(1, 1), lock(1, 2), release(1), lock(2, 2), lock(2, 1)];
    assert_eq!(found(&acts), cycle(&[1, 2], true));
}

#[test]
fn one_thread_in_opposite_orders_is_no_cycle() {
    let acts = [lock(1, 1), lock(1, 2), release(1), lock(1, 2), lock(1, 1)];
    assert_eq!(found(&acts), Found::new());
}

#[test]
fn one_order_is_no_cycle() {
    let acts = [lock(1, 1), lock(1, 2), release(1), lock(2, 1), lock(2, 2)];
    assert_eq!(found(&acts), Found::new());
}

#[test]
fn a_gate_keeps_acquisitions_apart_if_it_is_exclusive() {
    let gated = |of: fn(u64, u64) -> Act| {
        let acts = [of(1, 9), lock(1, 1), lock(1, 2), release(1)];
        let opposite = [of(2, 9), lock(2, 2), lock(2, 1), release(2)];
        found(&[acts, opposite].concat())
    };
    assert_eq!(gated(lock), Found::new());
    assert_eq!(gated(read), cycle(&[1, 2], true));
}

#[test]
fn a_pair_that_is_seen_again_without_its_gate_closes_the_cycle() {
    let gated = [lock(1, 9), lock(1, 1), lock(1, 2), release(1)];
    let opposite = [lock(2, 9), lock(2, 2), lock(2, 1), release(2)];
    let bare = [lock(1, 1), lock(1, 2), release(1)];
    assert_eq!(found(&[&gated[..], &opposite, &bare].concat()), cycle(&[1, 2], true));
}

#[test]
fn an_attempt_blocks_for_nothing_and_is_held_all_the_same() {
    let to = [lock(1, 1), attempt(1, 2), release(1), lock(2, 2), lock(2, 1)];
    assert_eq!(found(&to), Found::new());
    let from = [attempt(1, 1), lock(1, 2), release(1), lock(2, 2), lock(2, 1)];
    assert_eq!(found(&from), cycle(&[1, 2], true));
}

#[test]
fn three_threads_make_a_cycle_of_three() {
    let acts = |last| {
        [
            [lock(1, 1), lock(1, 2), release(1)],
            [lock(2, 2), lock(2, 3), release(2)],
            [lock(last, 3), lock(last, 1), release(last)],
        ]
        .concat()
    };
    assert_eq!(found(&acts(3)), cycle(&[1, 2, 3], true));
    assert_eq!(found(&acts(2)), Found::new());
}

#[test]
fn readers_block_readers_only_behind_a_writer() {
    let reads = [read(1, 1), read(1, 2), release(1), read(2, 2), read(2, 1), release(2)];
    assert_eq!(found(&reads), cycle(&[1, 2], false));
    let written = [reads.to_vec(), vec![read(1, 1), lock(1, 2), release(1)]].concat();
    assert_eq!(found(&written), cycle(&[1, 2], false), "2 is written, and 1 is still only read");
    let both = [written, vec![read(2, 2), lock(2, 1), release(2)]].concat();
    assert_eq!(found(&both), cycle(&[1, 2], true));
}

#[test]
fn recursive_readers_block_no_readers() {
    let recursive =
        |thread, lock| Act::Take { thread, lock, mode: Mode::SharedRecursive, blocks: true };
    let acts = [read(1, 1), recursive(1, 2), release(1), read(2, 2), recursive(2, 1)];
    assert_eq!(found(&acts), Found::new());
}

#[test]
fn a_removed_lock_is_in_no_later_cycle() {
    let acts = [lock(1, 1), lock(1, 2), release(1), Act::Remove { lock: 1 }];
    let later = [lock(2, 2), lock(2, 1)];
    assert_eq!(found(&[&acts[..], &later].concat()), Found::new());
}

#[test]
fn removing_a_lock_forgets_its_pairs_and_no_others() {
    let mut graph = Graph::new();
    for (held, taken) in [(1, 2), (2, 3), (3, 1)] {
        let set = [(held, Mode::Exclusive)];
        let pair = Pair { thread: 1, held: set[0], taken: (taken, Mode::Exclusive), set: &set };
        graph.add(pair, &Arc::new(()));
    }
    graph.remove(2);
    assert!(graph.has(3, 1) && !graph.has(1, 2) && !graph.has(2, 3));
    assert_eq!((graph.len(), graph.before.len()), (1, 1));
}

#[test]
fn two_locks_of_one_class_are_a_cycle_of_two_threads() {
    let mut graph = Graph::new();
    let class = (7, Mode::Exclusive);
    let mut add = |thread| {
        let pair = Pair { thread, held: class, taken: class, set: &[] };
        graph.add(pair, &Arc::new(())).len()
    };
    assert_eq!([add(1), add(1), add(2), add(3)], [0, 0, 1, 0]);
}

#[test]
fn what_the_bounds_cut_off_is_counted() {
    let mut graph = Graph::new();
    for other in 0..CONTEXTS as u64 + 3 {
        let set = [(1, Mode::Exclusive), (100 + other, Mode::Exclusive)];
        let pair = Pair { thread: 1, held: set[0], taken: (2, Mode::Exclusive), set: &set };
        graph.add(pair, &Arc::new(()));
    }
    assert_eq!(graph.cuts(), Cuts { searches: 0, contexts: 3 });
}

#[test]
fn a_lock_inside_and_outside_of_thousands_is_searched_in_few_steps() {
    let mut graph = Graph::new();
    let many = STEPS as u64 + 1;
    let mut add = |held, taken| {
        let set = [(held, Mode::Exclusive)];
        let pair = Pair { thread: held, held: set[0], taken: (taken, Mode::Exclusive), set: &set };
        graph.add(pair, &Arc::new(())).len()
    };
    let inside: usize = (1..=many).map(|lock| add(0, lock)).sum();
    let outside: usize = (1..=many).map(|lock| add(many + lock, 0)).sum();
    assert_eq!((inside, outside, add(1, many + 1)), (0, 0, 1));
    assert_eq!(graph.cuts(), Cuts::default());
}

#[test]
fn a_search_in_a_dense_graph_ends() {
    let mut graph = Graph::new();
    let locks = 40_u64;
    for held in 0..locks {
        for taken in (0..locks).filter(|&taken| taken > held) {
            let set = [(held, Mode::Exclusive)];
            let pair =
                Pair { thread: held, held: set[0], taken: (taken, Mode::Exclusive), set: &set };
            graph.add(pair, &Arc::new(()));
        }
    }
    let set = [(locks - 1, Mode::Exclusive)];
    let pair = Pair { thread: 99, held: set[0], taken: (0, Mode::Exclusive), set: &set };
    assert!(!graph.add(pair, &Arc::new(())).is_empty());
    assert_eq!(graph.cuts().searches, 1, "it has more walks than steps");
}
