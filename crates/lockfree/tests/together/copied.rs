//! Tests of structures that are copied whole, when a call breaks on the way. `Herlihy` and
//! `CopiedHeap` call `Clone`, `Ord` and `Drop` of other people's types, and each call may panic.
//! Each copy that was made is dropped once. A panic in a drop may come when all is done. Apart from
//! that, an operation that panics changes nothing.
//!
//! One call breaks in each run: the first, the second, and so on, until a run has fewer. Calls that
//! break in the structures that do not copy are in `advisories.rs` and `drops.rs`.

use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::values::{Ledger, Value};
use stanchion_lockfree::Herlihy;
use stanchion_lockfree::heap::CopiedHeap;

/// The kind of call that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Clone,
    Compare,
    Drop,
}

thread_local! {
    /// The call that breaks: its kind, and the number of calls of that kind before it.
    static FUSE: Cell<Option<(Call, usize)>> = const { Cell::new(None) };
}

/// This call has come; it breaks if it is the one.
fn comes(call: Call) {
    let Some((kind, before)) = FUSE.get().filter(|(kind, _)| *kind == call) else { return };
    match before.checked_sub(1) {
        Some(before) => FUSE.set(Some((kind, before))),
        // Not while another panic is under way: that would end the process in any case.
        None if !std::thread::panicking() => {
            FUSE.set(None);
            resume_unwind(Box::new(call));
        }
        None => {}
    }
}

/// A value of which copies are made, each with a line of its own in the ledger; and a key.
struct Copied {
    /// The ledger that counts drops.
    ledger: Arc<Ledger>,
    /// The value that is copied.
    value: Value,
}

impl Copied {
    fn new(ledger: &Arc<Ledger>, key: u64) -> Self {
        Self { ledger: Arc::clone(ledger), value: ledger.value(key) }
    }
}

impl Clone for Copied {
    fn clone(&self) -> Self {
        comes(Call::Clone);
        Self::new(&self.ledger, self.value.key())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        comes(Call::Drop);
    }
}

impl PartialEq for Copied {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Copied {}

impl PartialOrd for Copied {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Copied {
    fn cmp(&self, other: &Self) -> Ordering {
        comes(Call::Compare);
        self.value.key().cmp(&other.value.key())
    }
}

/// More copies than any run makes.
const MOST: usize = 20_000;

/// Has `run` go on until its calls of this kind are fewer than what would break; how many runs
/// broke.
fn each_breaks(call: Call, run: impl Fn(&Arc<Ledger>) -> usize) -> usize {
    for before in 0.. {
        let ledger = Ledger::new(MOST);
        FUSE.set(Some((call, before)));
        let panics = run(&ledger);
        let burnt = FUSE.take().is_none();
        ledger.assert_settled("what is copied");
        assert_eq!(panics, usize::from(burnt), "{call:?} number {before} broke once, and was told");
        if !burnt {
            return before;
        }
    }
    unreachable!()
}

/// Returns whether `body` panicked. Fails if the panic is not the one that was meant.
fn breaks(body: impl FnOnce()) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    outcome.map_err(|panic| assert!(panic.is::<Call>(), "something else broke")).is_err()
}

/// Pushes and pops by turns. After each, the content is as it was before it or as it must be after
/// it.
fn heap(call: Call, ledger: &Arc<Ledger>) -> usize {
    const KEYS: [u64; 6] = [5, 1, 4, 1, 3, 2];
    let heap: CopiedHeap<Copied, Copied> = CopiedHeap::new();
    let (mut expected, mut panics) = (Vec::new(), 0);
    let keys = |heap: &CopiedHeap<Copied, Copied>| {
        let fuse = FUSE.take();
        let all = std::iter::from_fn(|| heap.pop_min()).map(|(key, value)| {
            assert_eq!(key.value.key(), value.value.key(), "a key came with another's value");
            key.value.key()
        });
        let all: Vec<_> = all.collect();
        for key in &all {
            heap.push(Copied::new(ledger, *key), Copied::new(ledger, *key));
        }
        FUSE.set(fuse);
        all
    };
    for (turn, key) in KEYS.into_iter().chain(KEYS).enumerate() {
        let broke = breaks(|| heap.push(Copied::new(ledger, key), Copied::new(ledger, key)));
        panics += usize::from(broke);
        let mut after = expected.clone();
        after.push(key);
        after.sort_unstable();
        settle(call, broke, &mut expected, after, keys(&heap));
        if turn % 3 == 2 {
            let broke = breaks(|| drop(heap.pop_min()));
            panics += usize::from(broke);
            let after = expected[1..].to_vec();
            settle(call, broke, &mut expected, after, keys(&heap));
        }
    }
    panics + usize::from(breaks(|| drop(heap)))
}

/// Checks the content, and makes it the expected one from here on.
fn settle(call: Call, broke: bool, expected: &mut Vec<u64>, after: Vec<u64>, now: Vec<u64>) {
    let unchanged = broke && now == *expected;
    assert!(unchanged || !broke || call == Call::Drop, "{now:?} after {call:?} broke");
    if !unchanged {
        assert_eq!(now, after);
        *expected = after;
    }
}

#[test]
fn a_copied_heap_loses_nothing_when_something_breaks() {
    for (call, at_least) in [(Call::Clone, 100), (Call::Compare, 20), (Call::Drop, 100)] {
        let runs = each_breaks(call, |ledger| heap(call, ledger));
        assert!(runs >= at_least, "only {runs} times {call:?}");
    }
}

/// A vector that grows and shrinks by whole copies.
fn vector(call: Call, ledger: &Arc<Ledger>) -> usize {
    let object = Herlihy::new(Vec::new());
    let (mut expected, mut panics) = (Vec::new(), 0);
    for number in 0..12 {
        let (mut after, shrinks) = (expected.clone(), number % 3 == 2);
        let broke = breaks(|| {
            let update = |values: &mut Vec<Copied>| {
                if shrinks {
                    drop(values.remove(0));
                } else {
                    values.push(Copied::new(ledger, number));
                }
            };
            object.update(update);
        });
        panics += usize::from(broke);
        if shrinks {
            after.remove(0);
        } else {
            after.push(number);
        }
        let now = object.read(|values| values.iter().map(|copy| copy.value.key()).collect());
        settle(call, broke, &mut expected, after, now);
        panics += usize::from(breaks(|| drop(object.get())));
    }
    panics + usize::from(breaks(|| drop(object.into_inner())))
}

#[test]
fn an_object_is_as_it_was_when_something_breaks() {
    for call in [Call::Clone, Call::Drop] {
        let runs = each_breaks(call, |ledger| vector(call, ledger));
        assert!(runs >= 50, "only {runs} times {call:?}");
    }
}
