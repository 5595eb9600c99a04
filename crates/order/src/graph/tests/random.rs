//! Random histories: the search finds what the definition says, and nothing else.

use proptest::prelude::*;

use super::history::{Act, Found, History};
use crate::graph::Cuts;
use crate::mode::Mode;

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        4 => Just(Mode::Exclusive),
        2 => Just(Mode::Shared),
        1 => Just(Mode::SharedRecursive),
        1 => Just(Mode::Upgradable),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let thread = 1..=4_u64;
    prop_oneof![
        6 => (thread.clone(), 1..=4_u64, mode(), prop::bool::weighted(0.85))
            .prop_map(|(thread, lock, mode, blocks)| Act::Take { thread, lock, mode, blocks }),
        2 => thread.clone().prop_map(|thread| Act::ReleaseAll { thread }),
        2 => (thread, any::<usize>()).prop_map(|(thread, index)| Act::Release { thread, index }),
    ]
}

/// A thread that takes a few locks, one inside the other, and releases them all.
fn nest() -> impl Strategy<Value = Vec<Act>> {
    let takes = prop::collection::vec((1..=4_u64, mode(), prop::bool::weighted(0.85)), 2..=3);
    (1..=4_u64, takes).prop_map(|(thread, takes)| {
        let take = |(lock, mode, blocks)| Act::Take { thread, lock, mode, blocks };
        takes.into_iter().map(take).chain([Act::ReleaseAll { thread }]).collect()
    })
}

/// Acts in any order, or one nest after the other.
fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop_oneof![
        prop::collection::vec(act(), 0..48),
        prop::collection::vec(nest(), 0..12).prop_map(|nests| nests.concat()),
    ]
}

/// Plays the possible acts, and returns the cycles found and those defined.
fn play(acts: Vec<Act>) -> (Found, Found, Cuts) {
    let mut history = History::default();
    for act in acts {
        history.play(act);
    }
    (history.found.clone(), history.defined(), history.cuts())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..<_>::default() })]

    #[test]
    fn the_search_finds_the_cycles_of_the_definition(acts in acts()) {
        let (found, defined, cuts) = play(acts);
        prop_assert_eq!(cuts, Cuts::default());
        prop_assert_eq!(found, defined);
    }
}

#[test]
fn the_random_histories_have_cycles_of_each_kind() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let acts = acts();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..400 {
        let history = acts.new_tree(&mut runner).expect("no filter refuses").current();
        for (locks, firm) in play(history).1 {
            seen.insert((locks.len(), firm));
        }
    }
    let wanted = [(2, false), (2, true), (3, false), (3, true)];
    assert!(wanted.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}
