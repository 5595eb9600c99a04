//! Containers with distinct values: the polynomial algorithms against the search, on small
//! histories, right ones and ones with an error planted.

use crate::common::{Calls, Shape, explains, history};
use stanchion_linearizability::specification::Operation::{IsEmpty, Pop, Push};
use stanchion_linearizability::specification::{Operation, Outcome, PriorityQueue, Queue, Stack};
use stanchion_linearizability::{CheckError, History, Random, Specification, check};

/// Histories of each shape.
const HISTORIES: u64 = 300;

trait Container: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>> {}
impl<S: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>> Container for S {}

/// Plants an error, or something that may be one.
fn plant(calls: &mut Calls, random: &mut Random) {
    let ended: Vec<_> = (0..calls.len()).filter(|call| calls[*call].outcome.is_some()).collect();
    if ended.is_empty() {
        return;
    }
    let any = |random: &mut Random| ended[random.below(ended.len() as u64) as usize];
    let pops: Vec<_> = ended
        .iter()
        .copied()
        .filter(|call| matches!(calls[*call].outcome, Some(Outcome::Popped(Some(_)))))
        .collect();
    match random.below(4) {
        // Two pops change their values.
        0 | 1 if pops.len() > 1 => {
            let first = pops[random.below(pops.len() as u64) as usize];
            let second = pops[random.below(pops.len() as u64) as usize];
            let outcome = calls[first].outcome;
            calls[first].outcome = calls[second].outcome;
            calls[second].outcome = outcome;
        }
        // A call finds nothing, or something.
        2 => {
            let call = any(random);
            calls[call].outcome = match calls[call].outcome {
                Some(Outcome::Popped(_)) => Some(Outcome::Popped(None)),
                Some(Outcome::Empty(empty)) => Some(Outcome::Empty(!empty)),
                Some(Outcome::Full) => Some(Outcome::Pushed),
                other => other,
            };
        }
        // A call takes less time.
        _ => {
            let call = any(random);
            let call = &mut calls[call];
            if call.end - call.begin > 2 {
                if random.once_in(2) {
                    call.end = call.begin + 1;
                } else {
                    call.begin = call.end - 1;
                }
            }
        }
    }
}

/// A specification that does not say that it is one of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Plain<S>(S);

impl<S: Specification> Specification for Plain<S> {
    type Operation = S::Operation;
    type Outcome = S::Outcome;

    fn step(&self, operation: &S::Operation, outcome: Option<&S::Outcome>, after: &mut Vec<Self>) {
        let mut plain = Vec::new();
        self.0.step(operation, outcome, &mut plain);
        after.extend(plain.into_iter().map(Plain));
    }
}

/// The history without all calls of `value`.
fn without(
    history: &History<Operation<u64>, Outcome<u64>>,
    value: u64,
) -> History<Operation<u64>, Outcome<u64>> {
    let calls = history.calls().iter().filter(|call| {
        call.operation != Operation::Push(value)
            && call.outcome != Some(Outcome::Popped(Some(value)))
    });
    History::new(calls.cloned().collect()).expect("a part of a history")
}

/// Compares both ways of checking, and says whether there is an order.
fn compare<S: Container>(initial: &S, calls: Calls) -> bool {
    let history = History::new(calls).expect("a history");
    let searched = check(&Plain(initial.clone()), &history);
    match check(initial, &history) {
        Ok(order) => {
            assert!(searched.is_ok(), "an order where there is none: {order:?} {history:#?}");
            assert!(explains(initial, &history, &order), "a wrong order: {order:?} {history:#?}");
            true
        }
        Err(CheckError::Undecided(undecided)) => panic!("{undecided}: {history:#?}"),
        Err(CheckError::Violation(violation)) => {
            assert!(searched.is_err(), "there is an order: {:?}\n{violation}", searched.unwrap());
            let part = violation.history();
            assert!(
                check(&Plain(initial.clone()), part).is_err(),
                "a part is possible: {violation}"
            );
            // Calls to which values matter keep them.
            let needing = |outcome: &Option<Outcome<u64>>| {
                matches!(outcome, Some(Outcome::Full | Outcome::Empty(false)))
            };
            if part.calls().iter().any(|call| needing(&call.outcome)) {
                return false;
            }
            for call in part.calls() {
                if let Push(value) = call.operation {
                    let rest = without(part, value);
                    assert!(check(initial, &rest).is_ok(), "{value} can go: {violation}");
                }
            }
            false
        }
    }
}

/// Histories of all shapes, from this state on. Both answers have to be common.
fn agree<S: Container>(initial: &S) {
    let mut random = Random::new(7);
    let shapes =
        [(2, 4, 0, 0), (3, 4, 0, 0), (3, 4, 5, 0), (4, 3, 0, 2), (4, 3, 4, 2), (6, 2, 8, 0)];
    for (threads, calls, questions, unfinished) in shapes {
        let shape = Shape { threads, calls, questions, unfinished };
        let mut possible = 0;
        for _ in 0..HISTORIES {
            let mut calls = history(initial, shape, &mut random);
            if random.once_in(4) {
                assert!(compare(initial, calls), "it was made to be possible");
                continue;
            }
            for _ in 0..=random.below(3) {
                plant(&mut calls, &mut random);
            }
            possible += u64::from(compare(initial, calls));
        }
        assert!((HISTORIES / 20..HISTORIES).contains(&possible), "{possible} are possible");
    }
}

/// The state after these values have been pushed.
fn filled<S: Container>(initial: S, values: &[u64]) -> S {
    values.iter().fold(initial, |state, value| {
        let mut after = Vec::new();
        state.step(&Push(*value), Some(&Outcome::Pushed), &mut after);
        after.remove(0)
    })
}

#[test]
fn queue() {
    agree(&Queue::new());
}

#[test]
fn queue_with_values() {
    agree(&filled(Queue::new(), &[3, 1, 2]));
}

#[test]
fn stack() {
    agree(&Stack::new());
}

#[test]
fn stack_with_values() {
    agree(&filled(Stack::new(), &[3, 1, 2]));
}

#[test]
fn priority_queue() {
    agree(&PriorityQueue::new());
}

#[test]
fn priority_queue_with_values() {
    agree(&filled(PriorityQueue::new(), &[300 << 20, 1 << 30, 2]));
}

#[test]
fn relaxed_priority_queues() {
    agree(&PriorityQueue::relaxed(1));
    agree(&PriorityQueue::relaxed(usize::MAX));
}

#[test]
fn bounded_queues() {
    for capacity in 1..=3 {
        agree(&Queue::bounded(capacity));
    }
}

/// Values that are pushed again: then the search decides, and the message still has no value that
/// can go.
#[test]
fn values_that_come_back() {
    let mut random = Random::new(9);
    for _ in 0..HISTORIES {
        let shape = Shape { threads: 3, calls: 4, questions: 0, unfinished: 0 };
        let mut calls = history(&Queue::new(), shape, &mut random);
        plant(&mut calls, &mut random);
        for call in &mut calls {
            if let Push(value) = &mut call.operation {
                *value %= 3;
            }
            if let Some(Outcome::Popped(Some(value))) = &mut call.outcome {
                *value %= 3;
            }
        }
        compare(&Queue::new(), calls.clone());
        compare(&PriorityQueue::new(), calls.clone());
        compare(&Stack::new(), calls);
    }
}

/// One question needs a value early, the next one needs it gone: the tries have to go back.
#[test]
fn questions_that_need_each_others_values() {
    let mut random = Random::new(11);
    for _ in 0..HISTORIES {
        let shape = Shape { threads: 5, calls: 3, questions: 2, unfinished: 4 };
        let mut calls = history(&Queue::new(), shape, &mut random);
        if random.once_in(2) {
            plant(&mut calls, &mut random);
        }
        let asks = calls.iter().any(|call| call.operation == IsEmpty);
        let pops = calls.iter().any(|call| call.operation == Pop);
        let possible = compare(&Queue::new(), calls);
        assert!(possible || asks || pops, "pushes alone are always possible");
    }
}
