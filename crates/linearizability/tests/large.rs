//! Histories of thousands of calls with distinct values are decided, right ones and wrong ones,
//! in little memory.
//!
//! ```text
//! cargo test --release -p stanchion-linearizability --test large -- --nocapture
//! ```

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

use common::{Calls, Shape, explains, history};
use stanchion_linearizability::specification::{
    Count, Counter, Operation, Outcome, PriorityQueue, Queue, Stack,
};
use stanchion_linearizability::{
    Budget, CheckError, Event, History, Random, Specification, check, check_within,
};

/// An allocator that counts what each thread has allocated, so that tests beside each other do not
/// disturb each other. A check runs in the thread of its caller.
struct Counting;

thread_local! {
    /// The bytes that this thread has allocated, less those that it has freed.
    static NOW: Cell<isize> = const { Cell::new(0) };
    /// The most that `NOW` has been since the last call of [`peak`].
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: all calls are the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The size of a layout fits.
        NOW.set(NOW.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(NOW.get()));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.set(NOW.get() - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `check` and returns the most bytes that this thread had allocated meanwhile, beyond those
/// before.
fn peak<R>(check: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = check();
    (result, (PEAK.get() - before) as usize)
}

const THREADS: usize = 4;
const CALLS: usize = 500;

/// An error in the later half of a history.
type Plant = fn(&mut Calls);

fn pops(calls: &Calls) -> Vec<usize> {
    let popped = |call: &usize| matches!(calls[*call].outcome, Some(Outcome::Popped(Some(_))));
    (0..calls.len()).filter(popped).collect()
}

/// A pop takes the value of another pop, much later, and that one takes its value.
fn exchanged(calls: &mut Calls) {
    let pops = pops(calls);
    let [first, second] = [pops[pops.len() / 2], pops[pops.len() - 1]];
    let outcome = calls[first].outcome;
    calls[first].outcome = calls[second].outcome;
    calls[second].outcome = outcome;
}

/// A value comes out twice.
fn doubled(calls: &mut Calls) {
    let pops = pops(calls);
    calls[pops[pops.len() - 1]].outcome = calls[pops[pops.len() / 2]].outcome;
}

/// A pop finds nothing.
fn lost(calls: &mut Calls) {
    let pops = pops(calls);
    calls[pops[pops.len() / 2]].outcome = Some(Outcome::Popped(None));
}

/// A question finds a value before there was one.
fn claimed(calls: &mut Calls) {
    for call in &mut *calls {
        call.begin += 10;
        call.end += 10;
    }
    calls.push(stanchion_linearizability::Call {
        thread: THREADS,
        operation: Operation::IsEmpty,
        outcome: Some(Outcome::Empty(false)),
        begin: 1,
        end: 2,
    });
}

/// Checks right histories and wrong ones.
fn decided<S: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>>(
    name: &str,
    initial: &S,
) {
    let plants: [(&str, Option<Plant>); 5] = [
        ("right", None),
        ("exchanged", Some(exchanged)),
        ("doubled", Some(doubled)),
        ("lost", Some(lost)),
        ("claimed", Some(claimed)),
    ];
    for questions in [0, 16, 3] {
        for (error, plant) in plants {
            let mut random = Random::new(questions + 1);
            let shape = Shape { threads: THREADS, calls: CALLS, questions, unfinished: 0 };
            let mut calls = history(initial, shape, &mut random);
            if let Some(plant) = plant {
                plant(&mut calls);
            }
            let history = History::new(calls).expect("a history");
            let ((answer, time), bytes) = peak(|| {
                let start = Instant::now();
                (check(initial, &history), start.elapsed())
            });
            println!("{name}, {error}, {questions}: {time:.0?}, {} KiB", bytes >> 10);
            assert!(bytes < 64 << 20, "{bytes} bytes");
            match (plant, answer) {
                (None, Ok(order)) => assert!(explains(initial, &history, &order)),
                (Some(_), Err(CheckError::Violation(violation))) => {
                    let calls = violation.history().calls().len();
                    assert!(calls < 100, "{calls} calls are needed: {violation}");
                }
                (_, Ok(_)) => panic!("{name}, {error}: not found"),
                (_, Err(error)) => panic!("{name}: {error}"),
            }
        }
    }
}

#[test]
fn queues_are_decided() {
    decided("queue", &Queue::new());
}

#[test]
fn stacks_are_decided() {
    decided("stack", &Stack::new());
}

#[test]
fn priority_queues_are_decided() {
    decided("priority queue", &PriorityQueue::new());
}

#[test]
fn bags_are_decided() {
    let plants = [None, Some(doubled as Plant), Some(lost)];
    let initial = PriorityQueue::relaxed(usize::MAX);
    for plant in plants {
        let shape = Shape { threads: THREADS, calls: CALLS, questions: 16, unfinished: 0 };
        let mut calls = history(&initial, shape, &mut Random::new(1));
        plant.into_iter().for_each(|plant| plant(&mut calls));
        let history = History::new(calls).expect("a history");
        assert_eq!(check(&initial, &history).is_ok(), plant.is_none());
    }
}

/// Threads that stop in the middle, with many values that stay.
#[test]
fn unfinished_calls_are_decided() {
    fn of<S: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>>(initial: &S) {
        for seed in 0..4 {
            let shape = Shape { threads: THREADS, calls: CALLS, questions: 16, unfinished: 1 };
            let calls = history(initial, shape, &mut Random::new(seed));
            let history = History::new(calls).expect("a history");
            let order = check(initial, &history).expect("it is right");
            assert!(explains(initial, &history, &order));
        }
    }
    of(&Queue::new());
    of(&Stack::new());
    of(&PriorityQueue::new());
}

/// Nine pushes at once, which come out in an order that the next calls forbid.
#[test]
fn overlapping_pushes_are_decided() {
    let begins = (0..9).map(|thread| Event::Begin(thread, Operation::Push(thread as u64)));
    let ends = (0..9).map(|thread| Event::End(thread, Outcome::Pushed));
    let wrong = [
        Event::Begin(0, Operation::Pop),
        Event::End(0, Outcome::Popped(Some(3))),
        Event::Begin(0, Operation::Pop),
        Event::End(0, Outcome::Popped(Some(3))),
    ];
    let history = History::from_events(begins.chain(ends).chain(wrong)).unwrap();
    let (answer, bytes) = peak(|| check(&Queue::new(), &history));
    let violation = answer.unwrap_err().violation().expect("it is wrong");
    assert_eq!(violation.history().calls().len(), 3, "{violation}");
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

/// Where there is no polynomial algorithm, the answer is *undecided* within the memory allowed.
#[test]
fn the_budget_bounds_memory() {
    const CALLS: usize = 40;
    let begins = (0..CALLS).map(|thread| Event::Begin(thread, Count::Add(1 << thread)));
    let ends = (0..CALLS).map(|thread| Event::End(thread, None));
    let wrong = [Event::Begin(0, Count::Get), Event::End(0, Some(0))];
    let history = History::from_events(begins.chain(ends).chain(wrong)).unwrap();
    let budget = Budget::new().memory(16 << 20).steps(u64::MAX);
    let (answer, bytes) = peak(|| check_within(budget, &Counter::new(0), &history));
    let message = answer.unwrap_err().to_string();
    assert!(message.contains("undecided: 41 calls"), "{message}");
    assert!((8 << 20..32 << 20).contains(&bytes), "{bytes} bytes");
    let budget = Budget::new().steps(10_000);
    assert!(matches!(
        check_within(budget, &Counter::new(0), &history),
        Err(CheckError::Undecided(undecided)) if undecided.calls == 41 && undecided.budget == budget
    ));
}
