//! Histories made by simulated threads, and what an order of one has to be.

use stanchion_linearizability::specification::{Operation, Outcome};
use stanchion_linearizability::{Call, HistoryOf, Random, Specification};

pub(crate) type Calls = Vec<Call<Operation<u64>, Outcome<u64>>>;

/// Which histories to make.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) threads: usize,
    pub(crate) calls: usize,
    /// One call in so many asks whether there is a value; none with 0.
    pub(crate) questions: u64,
    /// One thread in so many does not return from its last call; each does with 0.
    pub(crate) unfinished: u64,
}

/// A call on its way: the outcome is known once it has taken effect.
struct Running {
    call: Call<Operation<u64>, Outcome<u64>>,
    outcome: Option<Outcome<u64>>,
    returns: bool,
}

/// Makes a history that is right: each call takes effect at a random moment between its beginning
/// and its end. Each value is pushed once.
///
/// `outcome` says what an operation returns, and what the state is then.
pub(crate) fn history<S: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>>(
    initial: &S,
    shape: Shape,
    random: &mut Random,
) -> Calls {
    let mut state = initial.clone();
    let mut done = Vec::new();
    let mut running: Vec<Option<Running>> = (0..shape.threads).map(|_| None).collect();
    let mut left = vec![shape.calls; shape.threads];
    let mut moment = 0;
    let mut next = 0;
    while running.iter().any(Option::is_some) || left.iter().any(|left| *left > 0) {
        let thread = random.below(shape.threads as u64) as usize;
        moment += 1;
        match running[thread].take() {
            None if left[thread] > 0 => {
                left[thread] -= 1;
                let operation = if shape.questions > 0 && random.once_in(shape.questions) {
                    Operation::IsEmpty
                } else if random.once_in(2) {
                    next += 1;
                    // Distinct, and in no order.
                    Operation::Push(random.below(1 << 20) << 20 | next)
                } else {
                    Operation::Pop
                };
                let last = left[thread] == 0 && shape.unfinished > 0;
                let returns = !(last && random.once_in(shape.unfinished));
                let call = Call { thread, operation, outcome: None, begin: moment, end: u64::MAX };
                running[thread] = Some(Running { call, outcome: None, returns });
            }
            None => {}
            Some(mut run) if run.outcome.is_none() => {
                let outcome = if !run.returns && random.once_in(2) {
                    // It stops before it takes effect.
                    done.push(run.call);
                    continue;
                } else {
                    take(&mut state, &run.call.operation)
                };
                run.outcome = Some(outcome);
                running[thread] = Some(run);
            }
            Some(run) if !run.returns => done.push(run.call),
            Some(run) => done.push(Call { outcome: run.outcome, end: moment, ..run.call }),
        }
    }
    done
}

/// Performs `operation`: tries the outcomes that there may be.
fn take<S: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>>(
    state: &mut S,
    operation: &Operation<u64>,
) -> Outcome<u64> {
    let mut after = Vec::new();
    // The values are those of the state as it displays itself.
    let shown = format!("{state:?}");
    let values = shown.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let outcomes: Vec<_> = match operation {
        Operation::Push(_) => vec![Outcome::Full, Outcome::Pushed],
        Operation::Pop => {
            let some = values.map(|value| Outcome::Popped(Some(value)));
            some.chain([Outcome::Popped(None)]).collect()
        }
        Operation::IsEmpty => vec![Outcome::Empty(true), Outcome::Empty(false)],
    };
    for outcome in outcomes {
        state.step(operation, Some(&outcome), &mut after);
        if let Some(next) = after.pop() {
            *state = next;
            return outcome;
        }
    }
    unreachable!("{operation:?} has no outcome in {state:?}")
}

/// Returns whether `order` is valid: it has all calls that returned, keeps to their times, and is
/// allowed. It may have unfinished calls.
pub(crate) fn explains<S: Specification>(
    initial: &S,
    history: &HistoryOf<S>,
    order: &[usize],
) -> bool {
    let calls = history.calls();
    let mut taken = vec![false; calls.len()];
    let mut latest_begin = 0;
    let mut states = vec![initial.clone()];
    for &position in order {
        let call = &calls[position];
        if std::mem::replace(&mut taken[position], true) || call.end < latest_begin {
            return false;
        }
        latest_begin = latest_begin.max(call.begin);
        let mut after = Vec::new();
        for state in &states {
            state.step(&call.operation, call.outcome.as_ref(), &mut after);
        }
        states = after;
    }
    let complete = calls.iter().zip(taken).all(|(call, taken)| taken || call.outcome.is_none());
    complete && !states.is_empty()
}
