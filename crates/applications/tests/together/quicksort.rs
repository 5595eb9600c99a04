//! Quicksort: the numbers are in order, whatever the structure, the threads and the numbers; and
//! what happens with a structure that is out of order.

use crate::common::structures::{Queue, Stack};
use proptest::prelude::*;
use stanchion_applications::Around;
use stanchion_applications::quicksort::{
    self, Fault, InQueue, InStack, Interval, Options, Pool, Refused, Run, numbers,
};
use stanchion_lockfree::Progress;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const SMALL: Options = Options {
    numbers: 5_000,
    cutoff: 20,
    threads: 1,
    seed: 5,
    pinned: false,
    instruction_ns: stanchion_applications::CVAX_INSTRUCTION_NS,
};

fn sorted(run: Result<Run, Refused>) -> Run {
    let run = run.expect("good options");
    assert_eq!(run.fault, None);
    assert!(run.numbers.is_sorted());
    let sum: u64 = run.threads.iter().map(|share| share.sorted).sum();
    assert_eq!(sum, run.numbers.len() as u64);
    run
}

#[test]
fn any_number_of_threads_over_a_queue_or_a_stack_takes_the_same_intervals() {
    let alone = sorted(quicksort::run(&SMALL, InStack(Stack::default()))).intervals();
    // Each is cut in two, and each part of more than 20 is one again: at least n / 20, and fewer
    // than there are numbers.
    assert!((250..1_000).contains(&alone), "{alone}");
    for threads in [1, 2, 3, 8, 64] {
        let options = Options { threads, ..SMALL };
        let stack = sorted(quicksort::run(&options, InStack(Stack::default())));
        let queue = sorted(quicksort::run(&options, InQueue(Queue::new(usize::MAX))));
        assert_eq!((stack.intervals(), queue.intervals()), (alone, alone), "{threads} threads");
        assert_eq!(stack.threads.len(), threads);
    }
}

#[test]
fn a_queue_with_little_room_will_do() {
    for room in [0, 1, 2, 10] {
        for threads in [1, 4] {
            let options = Options { threads, ..SMALL };
            let run = sorted(quicksort::run(&options, InQueue(Queue::new(room))));
            let kept: u64 = run.threads.iter().map(|share| share.kept).sum();
            assert_eq!(run.intervals() == 0, room == 0, "room for {room}");
            assert!(kept > 0, "room for {room}");
        }
    }
}

#[test]
fn the_paper_s_own() {
    let options = Options { threads: 2, ..Options::default() };
    let run = sorted(quicksort::run(&options, InStack(Stack::default())));
    let mut expected = numbers(500_000, 1);
    expected.sort_unstable();
    assert_eq!(run.numbers, expected);
}

#[test]
fn numbers_in_order_or_all_the_same_take_no_longer() {
    let count = 5_000_u32;
    for numbers in [
        (0..count).collect::<Vec<_>>(),
        (0..count).rev().collect(),
        vec![7; count as usize],
        (0..count).map(|number| number % 2).collect(),
        (0..count).map(|number| number.min(count - number)).collect(),
    ] {
        let pool = InStack(Stack::default());
        let run =
            sorted(quicksort::run_with(&SMALL, numbers, pool, &Around::default(), &mut |_| ()));
        assert!(run.intervals() < 1_000, "{}", run.intervals());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_numbers(
        numbers in prop::collection::vec(prop_oneof![0_u32..5, any::<u32>()], 1..400),
        cutoff in 1_usize..30,
        threads in 1_usize..4,
        seed: u64,
    ) {
        let options = Options { cutoff, threads, seed, ..SMALL };
        let mut expected = numbers.clone();
        expected.sort_unstable();
        let stack = quicksort::run_with(&options, numbers.clone(), InStack(Stack::default()), &Around::default(), &mut |_| ());
        prop_assert_eq!(&sorted(stack).numbers, &expected);
        let queue = quicksort::run_with(&options, numbers, InQueue(Queue::new(5)), &Around::default(), &mut |_| ());
        prop_assert_eq!(&sorted(queue).numbers, &expected);
    }
}

#[test]
fn the_watcher_is_called_at_the_end() {
    let mut heard = Vec::new();
    let numbers = numbers(300, 3);
    let pool = InStack(Stack::default());
    sorted(quicksort::run_with(&SMALL, numbers, pool, &Around::default(), &mut |sorted| {
        heard.push(sorted)
    }));
    assert_eq!(heard.last(), Some(&300));
    assert!(heard.is_sorted());
}

/// A stack of which the pop number `at` misbehaves.
struct OutOfOrder {
    /// The stack proper.
    inside: InStack<Stack<Interval>>,
    /// The number of pops so far.
    pops: AtomicU32,
    /// The pop that goes wrong.
    at: u32,
    /// Set if that pop panics instead.
    panics: bool,
}

impl OutOfOrder {
    fn new(at: u32, panics: bool) -> Self {
        Self { inside: InStack(Stack::default()), pops: AtomicU32::new(0), at, panics }
    }
}

impl Pool for OutOfOrder {
    const PROGRESS: Progress = Progress::Blocking;

    fn put(&self, interval: Interval) -> Result<(), Interval> {
        self.inside.put(interval)
    }

    fn take(&self) -> Option<Interval> {
        let interval = self.inside.take()?;
        if self.pops.fetch_add(1, Relaxed) == self.at {
            assert!(!self.panics, "the pool is out of order");
            // Out of bounds of nothing, and there already.
            let _ = self.inside.put(interval);
        }
        Some(interval)
    }
}

/// Two threads may now write the same numbers. The run ends all the same, and its report on the
/// numbers is right.
#[test]
fn a_pool_that_gives_an_interval_out_twice_is_survived() {
    for at in 0..20 {
        let options = Options { numbers: 2_000, threads: 3, ..SMALL };
        let run = quicksort::run(&options, OutOfOrder::new(at, false)).expect("good options");
        let mut expected = numbers(2_000, options.seed);
        expected.sort_unstable();
        assert_eq!(run.fault.is_none(), run.numbers == expected);
        if let Some(Fault { index, found, expected: belongs }) = run.fault {
            assert_eq!((run.numbers[index], expected[index]), (found, belongs));
        }
    }
}

#[test]
fn a_panic_of_the_pool_comes_to_the_caller() {
    for at in [0, 1, 5, 30] {
        for threads in [1, 2, 5] {
            let options = Options { threads, ..SMALL };
            let run = AssertUnwindSafe(|| quicksort::run(&options, OutOfOrder::new(at, true)));
            let panic = catch_unwind(run).expect_err("the pool panics");
            let message = panic.downcast_ref::<&str>().copied();
            assert_eq!(message, Some("the pool is out of order"));
        }
    }
}

#[test]
fn options_that_are_no_good_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let mut options = SMALL;
        change(&mut options);
        quicksort::run(&options, InStack(Stack::default())).expect_err("refused").to_string()
    };
    assert_eq!(refused(|o| o.numbers = 0), "0 numbers: must be 1 to 268435456");
    assert_eq!(refused(|o| o.cutoff = 0), "insertion sort for 0 numbers: must be 1 to 10000");
    assert_eq!(refused(|o| o.threads = 0), "0 threads: must be 1 to 64");
    assert_eq!(refused(|o| o.threads = 65), "65 threads: must be 1 to 64");
}
