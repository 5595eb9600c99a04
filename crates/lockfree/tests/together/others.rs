//! State machines of the objects that are not among `all_structures!`: counters, the cell with
//! links, the objects that are copied whole, and the heap that promises less about its order. Each
//! answers as a model of one thread does. Most begin with a state of the test's choice, so the
//! tests name them instead of expanding the table.
//!
//! `PROPTEST_CASES=3000 cargo test -p stanchion-lockfree --test together others` is a longer
//! search.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use stanchion_lockfree::counter::{
    CompareExchangeCounter, FetchAddCounter, LinkedCounter, LockedCounter, ShardedCounter,
};
use stanchion_lockfree::heap::{CopiedHeap, MultiQueue};
use stanchion_lockfree::{Counter, FetchAdd, Herlihy, LinkedCell, PriorityQueue};

/// As many as `PROPTEST_CASES` says, or few.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok());
    asked.unwrap_or(200)
}

fn adds<C: Counter>(counter: &C, amounts: &[u64]) {
    let mut sum = counter.get();
    for amount in amounts {
        if *amount == 1 {
            counter.increment();
        } else {
            counter.add(*amount);
        }
        sum += amount;
        assert_eq!(counter.get(), sum);
    }
}

fn says_what_was_there<C: FetchAdd>(counter: &C, amounts: &[u64]) {
    adds(counter, amounts);
    for amount in amounts {
        let before = counter.get();
        assert_eq!(counter.fetch_add(*amount), before);
        assert_eq!(counter.get(), before + amount);
    }
}

/// The content of the heap: numbers of values, by key.
#[derive(Default)]
struct Entries(BTreeMap<u64, Vec<usize>>);

impl Entries {
    fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn put(&mut self, key: u64, value: usize) {
        self.0.entry(key).or_default().push(value);
    }

    /// Takes that entry out. Fails if it is not there, or, with `smallest`, if there is a smaller
    /// one.
    fn take(&mut self, entry: Option<(u64, usize)>, smallest: bool) {
        let Some((key, value)) = entry else {
            return assert_eq!(self.len(), 0, "nothing came out of something");
        };
        if smallest {
            assert_eq!(self.0.keys().next(), Some(&key), "not the smallest key");
        }
        let values = self.0.get_mut(&key).expect("a key that is not there");
        let position = values.iter().position(|there| *there == value);
        values.swap_remove(position.expect("a value that is not there any more"));
        if values.is_empty() {
            self.0.remove(&key);
        }
    }
}

fn heap<H: PriorityQueue<Key = u64, Value = usize>>(
    heap: &H,
    smallest: bool,
    pushes: &[Option<u8>],
) {
    let mut entries = Entries::default();
    for (number, push) in pushes.iter().enumerate() {
        if let Some(key) = push {
            heap.push((*key).into(), number);
            entries.put((*key).into(), number);
        } else {
            entries.take(heap.pop_min(), smallest);
        }
        assert_eq!(heap.is_empty(), entries.len() == 0);
    }
    while entries.len() > 0 {
        entries.take(heap.pop_min(), smallest);
    }
    assert!(heap.pop_min().is_none() && heap.is_empty());
}

/// The calls on a cell with links. There are two links, so that one is held while the other stores.
#[derive(Clone, Copy, Debug)]
enum Linked {
    Link(bool),
    Validate(bool),
    Store(bool, u32),
    Load,
}

fn linked() -> impl Strategy<Value = Linked> {
    prop_oneof![
        any::<bool>().prop_map(Linked::Link),
        any::<bool>().prop_map(Linked::Validate),
        (any::<bool>(), 0_u32..3).prop_map(|(which, value)| Linked::Store(which, value)),
        Just(Linked::Load),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_count(amounts in vec(0_u64..50, 0..40), start in 0_u64..1_000) {
        says_what_was_there(&FetchAddCounter::new(start), &amounts);
        says_what_was_there(&CompareExchangeCounter::new(start), &amounts);
        says_what_was_there(&LinkedCounter::new(start as u32), &amounts);
        says_what_was_there(&LockedCounter::with_lock(start, stanchion_spin::TestAndSet::new()), &amounts);
        adds(&ShardedCounter::new(start), &amounts);
    }

    #[test]
    fn heaps_that_promise_less_or_copy(pushes in vec(proptest::option::weighted(0.6, any::<u8>()), 0..80)) {
        heap(&CopiedHeap::<u64, usize>::new(), true, &pushes);
        heap(&MultiQueue::<u64, usize>::with_heaps(1), true, &pushes);
        heap(&MultiQueue::<u64, usize>::with_heaps(5), false, &pushes);
    }

    /// A link is broken by each store since, whatever the value, and by nothing else.
    #[test]
    fn links_hold_until_a_store(operations in vec(linked(), 0..60)) {
        let cell = LinkedCell::new(7);
        let (mut value, mut links) = (7, [None, None]);
        // Beside each link: the value it was made with, and whether nothing has been stored since.
        for operation in operations {
            match operation {
                Linked::Link(which) => {
                    let link = cell.load_linked();
                    prop_assert_eq!(link.value(), value);
                    links[usize::from(which)] = Some((link, true));
                }
                Linked::Validate(which) => {
                    if let Some((link, holds)) = &links[usize::from(which)] {
                        prop_assert_eq!(link.validate(), *holds);
                    }
                }
                Linked::Store(which, new) => {
                    let Some((link, holds)) = links[usize::from(which)].take() else { continue };
                    prop_assert_eq!(link.store_conditional(new), holds);
                    if holds {
                        value = new;
                        links.iter_mut().flatten().for_each(|(_, holds)| *holds = false);
                    }
                }
                Linked::Load => prop_assert_eq!(cell.load(), value),
            }
        }
    }

    #[test]
    fn an_object_is_what_its_updates_make_of_it(updates in vec((0_usize..4, any::<u8>()), 0..60)) {
        let object = Herlihy::new(Vec::new());
        let mut model = Vec::new();
        for (kind, number) in updates {
            match kind {
                0 => prop_assert_eq!(object.update(Vec::<u8>::pop), model.pop()),
                1 => object.read(|now| assert_eq!(*now, model)),
                _ => {
                    object.update(|now| now.push(number));
                    model.push(number);
                }
            }
        }
        prop_assert_eq!(object.get(), model.clone());
        prop_assert_eq!(object.into_inner(), model);
    }
}
