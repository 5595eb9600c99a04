//! Models of quicksort: whole runs over a stack with a lock.

use stanchion_applications_loom::Around;
use stanchion_applications_loom::quicksort::{self, InStack, Interval, Options};
use stanchion_lockfree::{ConcurrentStack, Progress};
use stanchion_machine::Model;
use stanchion_models::{Lock, explore};

#[derive(Default)]
struct Stack(lock_api::Mutex<Lock, Vec<Interval>>);

impl ConcurrentStack for Stack {
    type Item = Interval;
    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, value: Interval) {
        self.0.lock().push(value);
    }

    fn pop(&self) -> Option<Interval> {
        self.0.lock().pop()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// Four numbers in two pairs: a thread that sorts a pair must see the writes of the thread that
/// made the pairs.
#[test]
fn two_threads_sort_four_numbers_preemptions_2() {
    let options = Options { cutoff: 1, threads: 2, ..Options::default() };
    let model = Model::new().preemptions(2);
    explore("quicksort::two_threads_sort_four_numbers_preemptions_2", model, move || {
        let pool = InStack(Stack::default());
        let run =
            quicksort::run_with(&options, vec![4, 3, 2, 1], pool, &Around::default(), &mut |_| ());
        let run = run.expect("good options");
        assert_eq!((run.numbers, run.fault), (vec![1, 2, 3, 4], None));
    });
}
