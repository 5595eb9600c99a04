//! Structures that are broken on purpose, each in the way of a real error. A checker that lets one
//! of them pass checks nothing.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread::sleep;
use std::time::Duration;

use stanchion_linearizability::specification::{Count, Counter, Operation, Outcome, Queue, Stack};
use stanchion_linearizability::{CheckError, Random, Specification, Tally, Trial};

/// More than enough: each of these is found within some hundred.
const HISTORIES: u64 = 20_000;

fn choose(random: &mut Random) -> Operation<u64> {
    if random.once_in(2) { Operation::Pop } else { Operation::Push(random.below(1_000)) }
}

/// Lets other threads run between two steps. Beside busy processes a thread that yields would wait
/// for all of them; one that has slept runs at once.
fn let_others_run() {
    sleep(Duration::from_micros(20));
}

type Verdict<S> = Result<Tally, CheckError<S>>;

/// A queue by what it does with the list of its values.
trait Broken: Default + Sync {
    fn push(&self, value: u64);
    fn pop(&self) -> Option<u64>;
}

fn perform<B: Broken>(structure: &B, operation: &Operation<u64>) -> Outcome<u64> {
    match operation {
        Operation::Push(value) => {
            structure.push(*value);
            Outcome::Pushed
        }
        Operation::Pop => Outcome::Popped(structure.pop()),
        Operation::IsEmpty => unreachable!("not chosen"),
    }
}

fn trial<B, S>(initial: &S) -> Verdict<S>
where
    B: Broken,
    S: Specification<Operation = Operation<u64>, Outcome = Outcome<u64>>,
{
    Trial::new().histories(HISTORIES).before(2).last([Operation::Pop; 4]).run(
        initial,
        B::default,
        choose,
        perform::<B>,
    )
}

fn found<S: Specification + Debug>(verdict: Verdict<S>) {
    let violation = verdict.expect_err("it is broken");
    let shown = violation.to_string();
    println!("{shown}");
    assert!(shown.contains("cannot come next: pop"), "{shown}");
}

/// Loses every third value that is pushed while another thread is inside.
#[derive(Default)]
struct Loses {
    values: Mutex<VecDeque<u64>>,
    inside: AtomicUsize,
}

impl Broken for Loses {
    fn push(&self, value: u64) {
        let others = self.inside.fetch_add(1, SeqCst);
        let_others_run();
        if others == 0 || !value.is_multiple_of(3) {
            self.values.lock().unwrap().push_back(value);
        }
        self.inside.fetch_sub(1, SeqCst);
    }

    fn pop(&self) -> Option<u64> {
        self.values.lock().unwrap().pop_front()
    }
}

/// Looks at the first value and takes it in two steps. Two threads get the same value, and one
/// value is lost.
#[derive(Default)]
struct Duplicates(Mutex<VecDeque<u64>>);

impl Broken for Duplicates {
    fn push(&self, value: u64) {
        self.0.lock().unwrap().push_back(value);
    }

    fn pop(&self) -> Option<u64> {
        let first = self.0.lock().unwrap().front().copied();
        let_others_run();
        self.0.lock().unwrap().pop_front();
        first
    }
}

/// A queue in two parts, like queues with a part for each producer. Each part is in order, the
/// whole is not.
#[derive(Default)]
struct Reorders([Mutex<VecDeque<u64>>; 2]);

impl Broken for Reorders {
    fn push(&self, value: u64) {
        let part = usize::from(value.is_multiple_of(2));
        self.0[part].lock().unwrap().push_back(value);
    }

    fn pop(&self) -> Option<u64> {
        self.0.iter().find_map(|part| part.lock().unwrap().pop_front())
    }
}

/// Finds nothing when it cannot have the lock.
#[derive(Default)]
struct SpuriouslyEmpty(Mutex<VecDeque<u64>>);

impl Broken for SpuriouslyEmpty {
    fn push(&self, value: u64) {
        let mut values = self.0.lock().unwrap();
        let_others_run();
        values.push_back(value);
    }

    fn pop(&self) -> Option<u64> {
        self.0.try_lock().ok()?.pop_front()
    }
}

/// Treiber's stack over a pool of a few nodes. Their numbers have no tags. A node that comes back
/// in time deceives the compare-exchange: two others pop it and the next one, and push it again.
struct Untagged {
    /// Number of the top node; 0 for none.
    top: AtomicUsize,
    nodes: [(AtomicUsize, AtomicUsize); 32],
    /// The nodes that were popped, in that order: the first comes back first.
    popped: Mutex<VecDeque<usize>>,
    /// The first node that was never used.
    unused: AtomicUsize,
    /// The calls of `pop`. Every third waits between its steps.
    pops: AtomicUsize,
    /// The calls that have ended.
    ended: Mutex<usize>,
    /// Wakes those that wait.
    another: Condvar,
}

impl Untagged {
    /// Waits until three calls of other threads have ended, or until they take too long: they may
    /// have ended before.
    fn wait_for_others(&self) {
        let ended = self.ended.lock().unwrap();
        let enough = *ended + 3;
        let longest = Duration::from_millis(5);
        drop(self.another.wait_timeout_while(ended, longest, |ended| *ended < enough).unwrap());
    }

    fn end(&self) {
        *self.ended.lock().unwrap() += 1;
        self.another.notify_all();
    }
}

impl Default for Untagged {
    fn default() -> Self {
        Self {
            top: AtomicUsize::new(0),
            nodes: Default::default(),
            popped: Mutex::default(),
            unused: AtomicUsize::new(1),
            pops: AtomicUsize::new(0),
            ended: Mutex::new(0),
            another: Condvar::new(),
        }
    }
}

impl Broken for Untagged {
    fn push(&self, value: u64) {
        let popped = self.popped.lock().unwrap().pop_front();
        // There are more nodes than calls.
        let node = popped.unwrap_or_else(|| self.unused.fetch_add(1, SeqCst));
        self.nodes[node].1.store(value as usize, SeqCst);
        loop {
            let top = self.top.load(SeqCst);
            self.nodes[node].0.store(top, SeqCst);
            if self.top.compare_exchange(top, node, SeqCst, SeqCst).is_ok() {
                return self.end();
            }
        }
    }

    fn pop(&self) -> Option<u64> {
        let waits = self.pops.fetch_add(1, SeqCst).is_multiple_of(3);
        loop {
            let top = self.top.load(SeqCst);
            if top == 0 {
                return None;
            }
            let next = self.nodes[top].0.load(SeqCst);
            if waits {
                self.wait_for_others();
            }
            if self.top.compare_exchange(top, next, SeqCst, SeqCst).is_ok() {
                let value = self.nodes[top].1.load(SeqCst);
                self.popped.lock().unwrap().push_back(top);
                self.end();
                return Some(value as u64);
            }
        }
    }
}

#[test]
fn a_queue_that_loses() {
    found(trial::<Loses, _>(&Queue::new()));
}

#[test]
fn a_queue_that_duplicates() {
    found(trial::<Duplicates, _>(&Queue::new()));
}

#[test]
fn a_queue_that_reorders() {
    found(trial::<Reorders, _>(&Queue::new()));
}

#[test]
fn a_queue_that_is_spuriously_empty() {
    found(trial::<SpuriouslyEmpty, _>(&Queue::new()));
}

#[test]
fn a_stack_with_aba() {
    found(trial::<Untagged, _>(&Stack::new()));
}

/// Reads and writes in two steps.
#[test]
fn a_counter_that_loses() {
    let verdict = Trial::new().histories(HISTORIES).last([Count::Get]).run(
        &Counter::new(0),
        || AtomicUsize::new(0),
        |random| Count::Add(random.below(9) + 1),
        |count, operation| {
            let before = count.load(SeqCst);
            if let Count::Add(amount) = operation {
                let_others_run();
                count.store(before + *amount as usize, SeqCst);
                return None;
            }
            Some(before as u64)
        },
    );
    let shown = verdict.expect_err("it is broken").to_string();
    assert!(shown.contains("cannot come next: get"), "{shown}");
}

/// And one that is not broken passes, with threads that met.
#[test]
fn a_queue_under_a_lock_passes() {
    #[derive(Default)]
    struct Locked(Mutex<VecDeque<u64>>);
    impl Broken for Locked {
        fn push(&self, value: u64) {
            self.0.lock().unwrap().push_back(value);
        }
        fn pop(&self) -> Option<u64> {
            self.0.lock().unwrap().pop_front()
        }
    }
    let trial = Trial::new().histories(2_000).before(2).last([Operation::Pop; 4]);
    let tally =
        trial.run(&Queue::new(), Locked::default, choose, perform::<Locked>).expect("it is right");
    println!("a locked queue: {tally}");
    assert_eq!(tally.histories, 2_000);
    // On one processor a thread may always get through its calls.
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        assert!(tally.overlapped > 0, "{tally}");
    }
    assert!(tally.calls >= 2_000 * (12 + 4), "{tally}");
}

/// The error of one thread alone is found, and the history that shows it is short.
#[test]
fn the_shortest_of_a_batch_is_shown() {
    /// A stack where a queue should be.
    #[derive(Default)]
    struct Wrong(Mutex<Vec<u64>>);
    impl Broken for Wrong {
        fn push(&self, value: u64) {
            self.0.lock().unwrap().push(value);
        }
        fn pop(&self) -> Option<u64> {
            self.0.lock().unwrap().pop()
        }
    }
    let violation = trial::<Wrong, _>(&Queue::new()).expect_err("a stack is no queue");
    let violation = violation.violation().expect("it is decided");
    let calls = violation.history().calls().len();
    assert!((3..=5).contains(&calls), "two pushes and a pop, and what overlapped: {violation}");
}
