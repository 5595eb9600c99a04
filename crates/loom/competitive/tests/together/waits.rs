//! Models of the table that waits are counted in: a name is whole when it can be read, and no wait
//! is lost or counted twice.

use std::sync::Mutex;

use stanchion_competitive_loom::PolicyMutex;
use stanchion_competitive_loom::policy::{AlwaysBlock, Contention, Policy, Wait};
use stanchion_competitive_loom::waits::{Record, Recorder, snapshot};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};

/// Checks `body`, and prints the number of executions.
fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model waits::{name}: {}", model.choices(0).objects(1_500).check(body));
}

/// Two threads want one name at one time, and there is room for one more: each that finds it finds
/// it whole.
#[test]
fn one_name() {
    explore("one_name", Model::new(), || {
        // The recording has begun.
        let first = Record::register("first").to_bits();
        let other = thread::spawn(|| Record::register("one").to_bits());
        let mine = Record::register("one").to_bits();
        let theirs = other.join().unwrap();
        let now = Record::register("one").to_bits();
        assert!(now != first && (now == mine || now == theirs));
    });
}

/// Remembers a wait: they cannot be made up.
struct Remembers;

static WAIT: Mutex<Option<Wait>> = Mutex::new(None);

impl Policy for Remembers {
    const INIT: Self = Self;

    fn threshold(&self, _contention: &Contention) -> u64 {
        0
    }

    fn adjust(&self, wait: &Wait) {
        *WAIT.lock().unwrap() = Some(*wait);
    }
}

fn some_wait() -> Wait {
    let _ = Model::new().choices(0).preemptions(1).check(|| {
        let mutex = Arc::new(PolicyMutex::<_, Remembers>::new(()));
        let other = {
            let mutex = mutex.clone();
            thread::spawn(move || drop(mutex.lock()))
        };
        drop(mutex.lock());
        other.join().unwrap();
    });
    WAIT.lock().unwrap().expect("one of the two threads had to wait")
}

/// Two locks count a wait each and are dropped, and want the one place that there is.
#[test]
fn two_locks_that_count_bounded() {
    let wait = some_wait();
    explore("two_locks_that_count_bounded", Model::new().preemptions(3), move || {
        let counts = move || {
            let recorder = Recorder::with_policy("one", AlwaysBlock);
            recorder.adjust(&wait);
        };
        // The name is there already.
        let record = Record::register("one");
        let other = thread::spawn(counts);
        counts();
        other.join().unwrap();
        assert_eq!(record.waits().count(), 2);
        assert_eq!(snapshot().locks.len(), 1);
    });
}
