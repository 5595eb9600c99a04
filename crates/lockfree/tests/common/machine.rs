//! A structure beside a model of it: whatever is done to both, they answer the same.
//!
//! Included by the state machine test and by the fuzz target, which differ in where the operations
//! come from.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::structures::{Family, Order, Shared};
use crate::values::{Ledger, Value};

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Puts a value in with this key.
    Put(u8),
    /// Takes one out.
    Take,
    /// Asks whether it is empty.
    Look,
    /// Takes so many out through `drain`, at most.
    Drain(u8),
    /// Takes one out through a `drain` that is then forgotten.
    ForgetDrain,
    /// Formats it.
    Format,
    /// Puts a value in with this key, by the only owner.
    PutMut(u8),
    /// Looks at the next value, then takes it out, by the only owner.
    TakeMut,
    /// Takes the next value out if its number is even, by the only owner.
    TakeIf,
}

impl Operation {
    /// From two bytes.
    pub(crate) fn of(kind: u8, number: u8) -> Self {
        match kind % 24 {
            0..=6 => Self::Put(number),
            7..=11 => Self::Take,
            12 => Self::Look,
            13 => Self::Drain(number % 8),
            14 => Self::ForgetDrain,
            15 => Self::Format,
            16..=19 => Self::PutMut(number),
            20..=22 => Self::TakeMut,
            _ => Self::TakeIf,
        }
    }
}

/// The expected content of a structure: the numbers of the values.
struct Model {
    /// The order in which they come out.
    order: Order,
    /// The numbers, the oldest first.
    line: VecDeque<usize>,
    /// By key; of those with the same key any may come first.
    keyed: BTreeMap<u64, Vec<usize>>,
}

impl Model {
    fn put(&mut self, value: usize, key: u64) {
        match self.order {
            Order::LastIn | Order::FirstIn => self.line.push_back(value),
            Order::SmallestKey => self.keyed.entry(key).or_default().push(value),
        }
    }

    fn len(&self) -> usize {
        self.line.len() + self.keyed.values().map(Vec::len).sum::<usize>()
    }

    /// Fails unless `taken` is what had to come out.
    fn take(&mut self, taken: Option<&Value>) {
        let number = taken.map(Value::number);
        match self.order {
            Order::LastIn => {
                assert_eq!(number, self.line.pop_back(), "not the last that was put in")
            }
            Order::FirstIn => {
                assert_eq!(number, self.line.pop_front(), "not the first that was put in")
            }
            Order::SmallestKey => {
                let Some(mut first) = self.keyed.first_entry() else {
                    return assert_eq!(number, None, "something came out of nothing");
                };
                let taken = taken.expect("nothing came out of something");
                assert_eq!(taken.key(), *first.key(), "not the smallest key");
                let position = first.get().iter().position(|number| *number == taken.number());
                first.get_mut().swap_remove(position.expect("a value that is not there any more"));
                if first.get().is_empty() {
                    first.remove();
                }
            }
        }
    }
}

/// Does all that to an empty structure and its model, then takes `rest` values out by `into_iter`
/// and drops it: each value has been dropped once.
pub(crate) fn run<F: Family>(operations: &[Operation], rest: usize) {
    let ledger = Ledger::new(operations.len());
    let mut structure = F::make::<Value>();
    let mut model = Model { order: F::ORDER, line: VecDeque::new(), keyed: BTreeMap::new() };
    for operation in operations {
        step(&mut structure, &mut model, *operation, &ledger);
        assert_eq!(ledger.made() - ledger.dropped(), model.len(), "after {operation:?}");
    }
    let taken = structure.into_some(rest);
    assert_eq!(taken.len(), rest.min(model.len()));
    taken.iter().for_each(|value| model.take(Some(value)));
    drop(taken);
    ledger.assert_settled(F::NAME);
}

fn step<S: Shared<Value>>(
    structure: &mut S,
    model: &mut Model,
    operation: Operation,
    ledger: &Arc<Ledger>,
) {
    match operation {
        Operation::Put(key) | Operation::PutMut(key) => {
            let value = ledger.value(key.into());
            let number = value.number();
            let is_full = structure.room().is_some_and(|room| model.len() >= room);
            let outcome = match operation {
                Operation::Put(_) => structure.put(key.into(), value),
                _ => structure.put_mut(key.into(), value),
            };
            match outcome {
                Ok(()) => {
                    assert!(!is_full, "{} fit in", model.len() + 1);
                    model.put(number, key.into());
                }
                Err(value) => {
                    assert!(is_full, "no room beside {}", model.len());
                    assert_eq!(value.number(), number, "another value came back");
                }
            }
        }
        Operation::Take => model.take(structure.take().as_ref()),
        Operation::Look => assert_eq!(structure.look(), model.len() == 0),
        Operation::Drain(count) => {
            let drained = structure.drained(count.into());
            assert_eq!(drained.len(), model.len().min(count.into()));
            drained.iter().for_each(|value| model.take(Some(value)));
        }
        Operation::ForgetDrain => model.take(structure.forget_drain().as_ref()),
        Operation::TakeMut => {
            let next = structure.peek_mut().map(|value| value.number());
            let taken = structure.take_mut();
            assert_eq!(next, taken.as_ref().map(Value::number), "another than was looked at");
            model.take(taken.as_ref());
        }
        Operation::TakeIf => {
            let mut next = None;
            let taken = structure.take_if(|value| {
                next = Some(value.number());
                value.number() % 2 == 0
            });
            assert_eq!(next.is_none(), model.len() == 0);
            let even = next.filter(|number| number % 2 == 0);
            assert_eq!(even, taken.as_ref().map(Value::number));
            if taken.is_some() {
                model.take(taken.as_ref());
            }
        }
        Operation::Format => assert!(!format!("{structure:?} {structure:#?}").is_empty()),
    }
}
