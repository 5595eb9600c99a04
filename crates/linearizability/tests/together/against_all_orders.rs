//! The search against the definition: every order of every subset, tried one by one.

use proptest::prelude::*;
use stanchion_linearizability::specification::{Operation, Outcome, PriorityQueue, Queue, Stack};
use stanchion_linearizability::{Call, CheckError, History, HistoryOf, Specification, check};

type Calls = Vec<Call<Operation<u8>, Outcome<u8>>>;

/// Returns whether `state` allows some order of the calls that are `left`. Unfinished calls may be
/// missing from it.
fn possible<S: Specification>(state: &S, history: &HistoryOf<S>, left: &[usize]) -> bool {
    let calls = history.calls();
    if left.iter().all(|call| calls[*call].outcome.is_none()) {
        return true;
    }
    left.iter().any(|&first| {
        let call = &calls[first];
        if left.iter().any(|&other| calls[other].end < call.begin) {
            return false;
        }
        let rest: Vec<_> = left.iter().copied().filter(|other| *other != first).collect();
        let mut after = Vec::new();
        state.step(&call.operation, call.outcome.as_ref(), &mut after);
        after.iter().any(|state| possible(state, history, &rest))
    })
}

/// Returns whether the order is valid: it has all calls that returned, keeps to their times, and is
/// allowed. It may have unfinished calls.
fn explains<S: Specification>(initial: &S, history: &HistoryOf<S>, order: &[usize]) -> bool {
    let calls = history.calls();
    let complete =
        (0..calls.len()).all(|call| order.contains(&call) || calls[call].outcome.is_none());
    let in_time = order.iter().enumerate().all(|(place, &call)| {
        order[place + 1..]
            .iter()
            .all(|&later| later != call && calls[later].end >= calls[call].begin)
    });
    let mut states = vec![initial.clone()];
    for &call in order {
        let mut after = Vec::new();
        for state in &states {
            state.step(&calls[call].operation, calls[call].outcome.as_ref(), &mut after);
        }
        states = after;
    }
    complete && in_time && !states.is_empty()
}

/// Up to seven calls of three threads, with outcomes that are often impossible.
fn histories() -> impl Strategy<Value = Calls> {
    let outcome = |pop: bool, value: u8| match (pop, value) {
        (false, _) => Outcome::Pushed,
        (true, 0) => Outcome::Popped(None),
        (true, value) => Outcome::Popped(Some(value)),
    };
    let call = (0..3_usize, any::<bool>(), 0..3_u8, 0..4_u64, 1..6_u64);
    prop::collection::vec(call, 1..8).prop_map(move |calls| {
        let mut clocks = [0; 3];
        let mut made: Calls = calls
            .into_iter()
            .map(|(thread, pop, value, pause, length)| {
                let begin = clocks[thread] + pause;
                let end = begin + length;
                clocks[thread] = end + 1;
                let operation = if pop { Operation::Pop } else { Operation::Push(value.max(1)) };
                Call { thread, operation, outcome: Some(outcome(pop, value)), begin, end }
            })
            .collect();
        // The last call of the last thread stays unfinished.
        if let Some(last) = made.iter_mut().rev().find(|call| call.thread == 2) {
            last.outcome = None;
            last.end = u64::MAX;
        }
        made
    })
}

fn agree<S: Specification<Operation = Operation<u8>, Outcome = Outcome<u8>>>(
    initial: &S,
    calls: Calls,
) -> Result<(), TestCaseError> {
    let history = History::new(calls).expect("made to be one");
    let all: Vec<_> = (0..history.calls().len()).collect();
    match check(initial, &history) {
        Ok(order) => prop_assert!(explains(initial, &history, &order), "{history:?} {order:?}"),
        Err(CheckError::Undecided(undecided)) => prop_assert!(false, "{undecided}"),
        Err(CheckError::Violation(violation)) => {
            prop_assert!(!possible(initial, &history, &all), "{violation}");
            // Its own history is impossible as well, and not longer.
            let cut = violation.history();
            let all: Vec<_> = (0..cut.calls().len()).collect();
            prop_assert!(!possible(initial, cut, &all), "{violation}");
            prop_assert!(cut.calls().len() <= history.calls().len());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn of_a_queue(calls in histories()) {
        agree(&Queue::new(), calls)?;
    }

    #[test]
    fn of_a_bounded_queue(calls in histories()) {
        agree(&Queue::bounded(1), calls)?;
    }

    #[test]
    fn of_a_stack(calls in histories()) {
        agree(&Stack::new(), calls)?;
    }

    #[test]
    fn of_a_relaxed_heap(calls in histories()) {
        agree(&PriorityQueue::relaxed(1), calls)?;
    }
}

/// Both verdicts occur, so that the tests above say something about each.
#[test]
fn both_verdicts_are_common() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let verdicts = (0..500).map(|_| {
        let calls = histories().new_tree(&mut runner).unwrap().current();
        check(&Queue::new(), &History::new(calls).unwrap()).is_ok()
    });
    let possible = verdicts.filter(|possible| *possible).count();
    assert!((50..450).contains(&possible), "{possible} of 500 are possible");
}
