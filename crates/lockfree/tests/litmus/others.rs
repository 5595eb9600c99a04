//! Litmus tests of objects that are not in `all_structures!`, and of the tests themselves.
//!
//! The heaps are not those of the table: one of them is here with two numbers of heaps.

use super::*;

#[test]
fn two_threads_agree_on_heaps_of_other_kinds() {
    let _alone = alone();
    let mut findings = Findings::default();
    macro_rules! heap {
        ($name:literal, $type:ty, $new:expr) => {
            shapes::<$type>(
                &mut findings,
                $name,
                || $new,
                &[
                    change!("push", |s| while s.pop_min().is_some() {}, |s| s.push(1, 1);
                        "is_empty": |s| !s.is_empty(), "pop" takes: |s| s.pop_min().is_some()),
                    change!("pop", |s| {
                        while s.pop_min().is_some() {}
                        s.push(1, 1);
                    }, |s| assert!(s.pop_min().is_some(), "there is one");
                        "is_empty": |s| s.is_empty()),
                ],
                false,
            )
        };
    }
    heap!("CopiedHeap", CopiedHeap<u64, u64>, CopiedHeap::new());
    heap!("MultiQueue", MultiQueue<u64, u64>, MultiQueue::with_heaps(4));
    heap!("MultiQueue of one", MultiQueue<u64, u64>, MultiQueue::with_heaps(1));
    findings.conclude();
}

#[test]
fn two_threads_agree_on_objects() {
    let _alone = alone();
    let mut findings = Findings::default();
    shapes::<Herlihy<u64>>(
        &mut findings,
        "Herlihy",
        || Herlihy::new(0_u64),
        &[change!("update", |s| s.update(|n| *n = 0), |s| s.update(|n| *n += 1);
            "get": |s| s.get() > 0, "read": |s| s.read(|n| *n > 0))],
        false,
    );
    shapes::<LinkedCell>(
        &mut findings,
        "LinkedCell",
        || LinkedCell::new(0),
        &[change!("store_conditional",
            |s| assert!(s.load_linked().store_conditional(0)),
            |s| assert!(s.load_linked().store_conditional(1));
            "load": |s| s.load() > 0, "load_linked": |s| s.load_linked().value() > 0)],
        false,
    );
    findings.conclude();
}

/// A counter, and its value before a round.
struct Since<C> {
    /// The counter.
    counter: C,
    /// The value before the round.
    before: AtomicU64,
}

/// A counter's documentation promises that an addition is in a sum if it happened before, and that
/// sums do not shrink; fences of the caller's make it happen before.
fn counter<C: Counter + Default + Sync>(findings: &mut Findings, name: &str) {
    let make = || Since { counter: C::default(), before: AtomicU64::new(0) };
    let changes = [change!("add",
        |s: &Since<C>| s.before.store(s.counter.get(), Relaxed),
        |s| s.counter.add(1);
        "get": |s| s.counter.get() > s.before.load(Relaxed))];
    shapes(findings, name, make, &changes, true);
}

#[test]
fn counters_count_what_happened_before() {
    let _alone = alone();
    let mut findings = Findings::default();
    macro_rules! counters {
        ([] $({ $row:ident: $counter:ty, name: $name:literal, $($rest:tt)* })+) => {
            $(counter::<$counter>(&mut findings, $name);)+
        };
    }
    lockfree::__structures!(counter: counters);
    lockfree::__structures!(other_counter: counters);
    findings.conclude();
}

/// A queue of one slot as one might write it for one producer and one consumer: nothing in it
/// orders a push before what comes after it.
#[derive(Default)]
struct Careless(AtomicBool);

impl ConcurrentQueue for Careless {
    type Item = ();

    const PROGRESS: lockfree::Progress = lockfree::Progress::WaitFree;

    fn try_push(&self, (): ()) -> Result<(), Full<()>> {
        self.0.store(true, Release);
        Ok(())
    }

    fn pop(&self) -> Option<()> {
        let full = self.0.load(Acquire);
        self.0.store(false, Relaxed);
        full.then_some(())
    }

    fn is_empty(&self) -> bool {
        !self.0.load(Acquire)
    }
}

/// These tests can fail: a queue that has the fault in question is found.
#[test]
fn a_queue_of_plain_stores_is_found() {
    if processors() < 2 || !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        println!("skipped: this machine shows no store buffer");
        return;
    }
    let _alone = alone();
    let mut tried = 0;
    let found = (0..200).any(|_| {
        let (failures, rounds) = play(
            FEW,
            &Careless::default,
            |queue| {
                let _ = queue.pop();
            },
            &[
                &|round| {
                    let _ = round.x.try_push(());
                    (!round.y.is_empty()).into()
                },
                &|round| {
                    let _ = round.y.try_push(());
                    (!round.x.is_empty()).into()
                },
            ],
            both_missed,
        );
        tried += rounds;
        failures > 0
    });
    println!("{tried} rounds");
    // Fewer rounds say that the threads seldom had two processors at the same time.
    assert!(found || tried < FEW, "{tried} rounds have not shown what every processor does");
}
