//! Sequences of operations on each structure and on a model of it: they answer the same, and every
//! value is dropped once.
//!
//! One thread: what threads do to one another is in the models of `crates/loom/lockfree` and in the
//! recorded histories. The same operations from any bytes are the fuzz target
//! `lockfree_operations`. `PROPTEST_CASES=3000 cargo test -p stanchion-lockfree --test
//! state_machine` is a longer search.

use stanchion_lockfree as lockfree;

#[path = "common/machine.rs"]
mod machine;
#[path = "common/structures.rs"]
mod structures;
#[path = "common/values.rs"]
mod values;

use std::cell::RefCell;

use lockfree::Progress;
use machine::{Operation, run};
use proptest::collection::vec;
use proptest::prelude::*;
use structures::{Family, Order, each};

thread_local! {
    static OPERATIONS: RefCell<(Vec<Operation>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

fn same<F: Family>() {
    OPERATIONS.with_borrow(|(operations, rest)| run::<F>(operations, *rest));
}

/// All structures, with the same operations.
fn all(operations: Vec<Operation>, rest: usize) {
    OPERATIONS.set((operations, rest));
    each!(same);
}

/// As many as `PROPTEST_CASES` says, or few: the longer search is the fuzz target's.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok());
    asked.unwrap_or(100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn structures_answer_as_their_models_do(
        operations in vec(any::<(u8, u8)>(), 0..120),
        rest in 0_usize..12,
    ) {
        all(operations.into_iter().map(|(kind, number)| Operation::of(kind, number)).collect(), rest);
    }

    /// Runs of the same operation: blocks, rings and pools get to their ends.
    #[test]
    fn also_when_they_grow_and_shrink_by_many(
        runs in vec((any::<bool>(), 0_usize..150, any::<u8>()), 0..8),
        rest in 0_usize..200,
    ) {
        let operations = runs.into_iter().flat_map(|(puts, count, key)| {
            (0..count).map(move |index| {
                if puts { Operation::Put(key.wrapping_mul(index as u8 | 1)) } else { Operation::Take }
            })
        });
        all(operations.collect(), rest);
    }
}

/// A stack that says it is a queue.
struct Mislabelled;

impl Family for Mislabelled {
    const NAME: &'static str = "Mislabelled";
    const ORDER: Order = Order::FirstIn;
    const PROGRESS: Progress = Progress::Blocking;
    type Of<T: Send + 'static> = lockfree::stack::LockedStack<T>;

    fn make<T: Send + 'static>() -> Self::Of<T> {
        lockfree::stack::LockedStack::new()
    }
}

#[test]
#[should_panic(expected = "not the first that was put in")]
fn a_structure_with_another_order_is_caught() {
    run::<Mislabelled>(&[Operation::Put(1), Operation::Put(2), Operation::Take], 0);
}
