//! The specification of a queue of slots that threads can hold: what `NikolaevQueue` promises.
//!
//! A push takes a slot before its value can be popped. A pop frees the slot of its value some
//! time after it took the value. So a push may be refused although the queue has fewer values than
//! it has room for, but only if each other slot is held: by a push or a pop of another thread that
//! goes on at the same moment.
//!
//! A specification sees calls and no moments. So a push becomes two calls that last as long as it
//! did, of which one takes the slot and the other pushes the value. A pop becomes one call that
//! pops the value and one that frees the slot.

use std::collections::VecDeque;

use stanchion_linearizability::specification::{Operation, Outcome, Queue};
use stanchion_linearizability::{Call, History, Specification, check};

/// A queue with a fixed number of slots.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slots {
    /// The values, the oldest first.
    values: VecDeque<u64>,
    /// The number of slots.
    room: usize,
    /// The pushes that have taken a slot and have not pushed their value, in ascending order.
    filling: Vec<usize>,
    /// The pops that have taken a value and have not freed its slot, in ascending order.
    emptying: Vec<usize>,
}

/// A part of a call of this number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// The push takes a slot.
    Take(usize),
    /// The rest of a push, the beginning of a pop, or the whole of another call.
    Main(usize, Operation<u64>),
    /// The pop frees its slot.
    Free(usize),
}

/// Puts a number into a list in ascending order; `false` if it is there.
fn insert(list: &mut Vec<usize>, number: usize) -> bool {
    let position = list.partition_point(|other| *other < number);
    list.insert(position, number);
    list.get(position + 1) != Some(&number)
}

/// Takes a number from a list; `false` if it is not there.
fn remove(list: &mut Vec<usize>, number: usize) -> bool {
    let position = list.iter().position(|other| *other == number);
    position.map(|position| list.remove(position)).is_some()
}

impl Specification for Slots {
    type Operation = Part;
    /// None for the parts that return nothing.
    type Outcome = Option<Outcome<u64>>;

    fn step(&self, part: &Part, outcome: Option<&Option<Outcome<u64>>>, after: &mut Vec<Self>) {
        let mut next = self.clone();
        let held = self.values.len() + self.filling.len() + self.emptying.len();
        // Of calls that have not returned, those count that have an effect.
        let outcome = outcome.copied().unwrap_or_else(|| match part {
            Part::Main(_, Operation::Push(_)) => Some(Outcome::Pushed),
            Part::Main(_, Operation::Pop) => Some(Outcome::Popped(self.values.front().copied())),
            _ => None,
        });
        let allowed = match (*part, outcome) {
            (Part::Take(call), _) => held < self.room && insert(&mut next.filling, call),
            (Part::Free(call), _) => remove(&mut next.emptying, call),
            (Part::Main(call, Operation::Push(value)), Some(Outcome::Pushed)) => {
                next.values.push_back(value);
                remove(&mut next.filling, call)
            }
            (Part::Main(_, Operation::Push(_)), Some(Outcome::Full)) => held == self.room,
            (Part::Main(call, Operation::Pop), Some(Outcome::Popped(Some(value)))) => {
                next.values.pop_front() == Some(value) && insert(&mut next.emptying, call)
            }
            (Part::Main(_, Operation::Pop), Some(Outcome::Popped(None))) => self.values.is_empty(),
            (Part::Main(_, Operation::IsEmpty), Some(Outcome::Empty(empty))) => {
                empty == self.values.is_empty()
            }
            _ => false,
        };
        if allowed {
            after.push(next);
        }
    }
}

/// Checks that the calls of `history` are those of a queue of `room` slots, empty at first.
///
/// # Errors
///
/// The drawing of the violation, or that it is undecided.
pub(crate) fn judge(
    room: usize,
    history: &History<Operation<u64>, Outcome<u64>>,
) -> Result<(), String> {
    let refused = |call: &Call<_, _>| call.outcome == Some(Outcome::Full);
    if !history.calls().iter().any(refused) {
        // The holder of a slot matters to refused pushes alone.
        return check(&Queue::bounded(room), history).map(drop).map_err(|error| error.to_string());
    }
    let mut parts = Vec::new();
    for (number, call) in history.calls().iter().enumerate() {
        let main = Part::Main(number, call.operation);
        let (first, second) = match call.outcome {
            Some(Outcome::Pushed) => (Part::Take(number), Some(main)),
            Some(Outcome::Popped(Some(_))) => (main, Some(Part::Free(number))),
            _ => (main, None),
        };
        for (half, operation) in [Some(first), second].into_iter().enumerate() {
            let Some(operation) = operation else { continue };
            let outcome = matches!(operation, Part::Main(..)).then_some(call.outcome).flatten();
            let thread = 2 * call.thread + half;
            let outcome = Some(outcome);
            parts.push(Call { thread, operation, outcome, begin: call.begin, end: call.end });
        }
    }
    let history = History::new(parts).expect("each half has the times of its call");
    let empty = Slots { values: VecDeque::new(), room, filling: Vec::new(), emptying: Vec::new() };
    check(&empty, &history).map(drop).map_err(|error| error.to_string())
}
