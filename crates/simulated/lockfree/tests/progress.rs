//! The promise of `Progress`, tested: one thread is frozen after each access of each operation in
//! turn, and two others must finish.
//!
//! A structure's `PROGRESS` is exactly what is found here. A structure that is non-blocking passes
//! at every access. One that is blocking has an access after which the others wait for the frozen
//! thread, and the simulator says at which word.
//!
//! Why the simulated machine: the thread stops *after the k-th access*, for every k until the
//! operation ends, and a wait that never ends is a deadlock in virtual time and not a slow test.
//! The same with real threads, instruction by instruction, is `crates/lockfree/tests/progress`.
//!
//! The victim begins
//!
//! - alone, and the others when it has stopped: so it is stopped after each access of an operation
//!   that no thread disturbs, of all of them and of no other;
//! - among the others, at a time that varies: so it is stopped in operations that have failed,
//!   helped others, or found what others have left half done.

use stanchion_lockfree_simulated as lockfree;

#[path = "../../../lockfree/tests/common/structures.rs"]
mod structures;

use std::process::Command;
use std::sync::Arc;

use stanchion_machine::atomic::{AtomicU64, Ordering};
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until, wait_until};
use stanchion_simulator::{
    Arena, Failure, Simulation, ThreadId, Time, inside, machines, os::freeze,
};
use structures::{Case, Subject};

#[global_allocator]
static ARENA: Arena = Arena;

/// The operation of the victim, and the number of values in the structure before it.
const OPERATIONS: [(&str, Operation, u64); 8] = [
    ("put into none", put, 0),
    ("put to one", put, 1),
    ("put to four", put, 4),
    ("take from none", take, 0),
    ("take the only one", take, 1),
    ("take one of four", take, 4),
    ("look at none", look, 0),
    ("look at four", look, 4),
];

/// Operations of each kind of each of the others.
const EACH: u64 = 12;

/// More accesses than any operation makes by itself.
const ENDLESS: u64 = 20_000;

type Operation = fn(&dyn Subject);

fn put(subject: &dyn Subject) {
    subject.put(1_000);
}

fn take(subject: &dyn Subject) {
    subject.take();
}

fn look(subject: &dyn Subject) {
    subject.look();
}

/// The time at which the victim begins.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    Alone,
    /// After so many nanoseconds, among the others.
    Among(u64),
}

const BEGINNINGS: [Beginning; 4] =
    [Beginning::Alone, Beginning::Among(0), Beginning::Among(333), Beginning::Among(777)];

/// Runs the operation up to its access number `accesses`, and two other threads to their end;
/// whether the victim was frozen.
fn stall(
    make: fn() -> Arc<dyn Subject>,
    (_, operation, filled): (&str, Operation, u64),
    accesses: u64,
    beginning: Beginning,
) -> Result<bool, Failure> {
    let simulation = Simulation::new(machines::modern(3))
        .seed(accesses)
        .time(Time::millis(20))
        .accesses(500_000);
    let run = simulation.run(move || {
        let subject = make();
        (0..filled).for_each(|value| _ = subject.put(value));
        let own = subject.clone();
        let victim = spawn("victim", move || {
            if let Beginning::Among(nanos) = beginning {
                stanchion_machine::work(nanos);
            }
            freeze::after(accesses, || operation(&*own));
        });
        if matches!(beginning, Beginning::Alone) {
            freeze::wait(victim);
        }
        let others = ["first", "second"].map(|name| {
            let subject = subject.clone();
            spawn(name, move || {
                for round in 0..EACH {
                    subject.put(round);
                    subject.take();
                }
            })
        });
        others.into_iter().for_each(inside::join);
        freeze::wait(victim)
    });
    run.map(|run| run.result)
}

fn spawn(name: &str, body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(Some(name.to_owned()), None, Box::new(body))
}

/// Returns the number of times that the victim was stalled, and the first point at which the others
/// did not finish.
fn search(make: fn() -> Arc<dyn Subject>) -> (u64, Option<String>) {
    let mut stalls = 0;
    for operation in OPERATIONS {
        for beginning in BEGINNINGS {
            for accesses in 0.. {
                assert!(accesses < ENDLESS, "{} does not end", operation.0);
                stalls += 1;
                match stall(make, operation, accesses, beginning) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) => {
                        let place = format!("{}, frozen after access {accesses}", operation.0);
                        return (stalls, Some(format!("{place} ({beginning:?}): {failure}")));
                    }
                }
            }
        }
    }
    (stalls, None)
}

fn test(case: &Case) {
    let (stalls, found) = search(case.make);
    let said = found.as_deref().unwrap_or("the others always finish");
    println!("{} ({:?}), {stalls} stalls: {said}", case.name, case.progress);
    if case.progress.is_non_blocking() {
        assert_eq!(found, None, "{} says that it is {:?}", case.name, case.progress);
    } else {
        assert!(found.is_some(), "{} is better than it says: no thread waits", case.name);
    }
}

/// Each in a process of its own: what a frozen thread owns is never freed, and there is not enough
/// simulated memory for the runs of all structures. `STANCHION_STRUCTURE="TreiberStack counts"
/// cargo test -p stanchion-lockfree-simulated --test progress -- --nocapture` tries one.
#[test]
fn every_structure_is_what_it_says() {
    const ONE: &str = "STANCHION_STRUCTURE";
    let cases = structures::all();
    if let Ok(one) = std::env::var(ONE) {
        let case = cases.iter().find(|case| case.name == one);
        return test(case.unwrap_or_else(|| panic!("there is no structure {one:?}")));
    }
    let program = std::env::current_exe().expect("a program has a path");
    let mut wrong = Vec::new();
    for case in &cases {
        let mut child = Command::new(&program);
        child.args(["--exact", "every_structure_is_what_it_says", "--nocapture"]);
        let output = child.env(ONE, case.name).output().expect("it is this program");
        println!("{}", String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            println!("{}", String::from_utf8_lossy(&output.stderr));
            wrong.push(case.name);
        }
    }
    assert!(wrong.is_empty(), "not what they say: {wrong:?}");
}

/// A lock that is held for one access.
struct Gate(AtomicU64);

impl Subject for Gate {
    fn put(&self, _: u64) -> bool {
        let exchange = || self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok();
        retry_until(exchange, &mut <Patient>::start());
        self.0.store(0, Ordering::Release);
        true
    }

    fn take(&self) -> Option<u64> {
        None
    }

    fn look(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A slot is claimed by one exchange and filled by the next, and a taker waits for the second: the
/// way of most queues that are called lock-free.
#[derive(Default)]
struct Claim {
    /// The number of slots that are claimed. Written by threads that put.
    claimed: AtomicU64,
    /// The number of slots that are filled. Written by threads that put.
    filled: AtomicU64,
}

impl Subject for Claim {
    fn put(&self, _: u64) -> bool {
        self.claimed.fetch_add(1, Ordering::Relaxed);
        self.filled.fetch_add(1, Ordering::Release);
        true
    }

    fn take(&self) -> Option<u64> {
        let claimed = self.claimed.load(Ordering::Relaxed);
        wait_until(
            &self.filled,
            Ordering::Acquire,
            |filled| filled >= claimed,
            &mut <Patient>::start(),
        );
        None
    }

    fn look(&self) -> bool {
        false
    }
}

/// Adds by one exchange.
struct Add(AtomicU64);

impl Subject for Add {
    fn put(&self, _: u64) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn take(&self) -> Option<u64> {
        None
    }

    fn look(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// The search itself: structures in which the others wait after one access only.
#[test]
fn one_access_after_which_the_others_wait_is_found() {
    let toys: [fn() -> Arc<dyn Subject>; 2] =
        [|| Arc::new(Gate(AtomicU64::new(0))), || Arc::new(Claim::default())];
    for make in toys {
        let found = search(make).1.expect("a thread waits");
        assert!(found.contains("put into none, frozen after access 1 (Alone)"), "{found}");
        assert!(found.contains("'victim' is frozen"), "{found}");
    }
}

#[test]
fn where_no_thread_waits_nothing_is_found() {
    let (stalls, found) = search(|| Arc::new(Add(AtomicU64::new(0))));
    assert_eq!(found, None);
    assert!(stalls >= 40, "{stalls}");
}
