//! Models of the strategies: what they do with tasks and blocks between threads.
//!
//! | model | threads | asked of |
//! | --- | --- | --- |
//! | `a_creator_meets_a_starter` | 2 | each |
//! | `two_create` | 2: then one place starts both | each |
//! | `two_start` | 2: and one task is ready | each |
//! | `two_start_of_three` | 2: and three tasks are ready at one place | each |
//! | `two_create_and_one_starts_bounded` | 3 | each |
//! | `blocks_go_through_the_pool` | 2: one finishes more than it may keep, the other creates | local free lists |
//! | `two_need_a_slab` | 2: both find no block at all | local free lists |
//! | `an_idle_place_is_told` | 2: a creator, and a place that goes to sleep | idle queue, local ready queues, probing |
//! | `a_creator_meets_a_place_that_looks` | 2: the place is idle, and can be handed a task | idle queue, probing |
//! | `a_creator_meets_a_place_that_leaves` | 2: likewise | idle queue, probing |
//! | `two_creators_and_an_idle_place_bounded` | 3 | idle queue |
//! | `two_creators_and_a_place_that_is_probed_bounded` | 3 | probing |
//! | `a_creator_and_two_that_leave_bounded` | 3 | idle queue |
//!
//! Three preemptions where there is a bound, but two for the creator and two that leave and for the two creators and a place that is probed, and one
//! for the two creators and an idle place in a queue.
//!
//! Tasks carry a value in a checked cell, and blocks are few: whoever is given one too early fails.

#[path = "../../lockfree/tests/common/mod.rs"]
mod common;

use common::{Lock, explore};
use machine::sync::Arc;
use machine::{Model, thread};
use stanchion_competitive::EventCount;
use stanchion_threadpool_loom::strategy::{
    CentralElseLocal, Fifo, IdleQueue, Lifo, LocalFreeList, LocalReadyQueue, MultipleLocks,
    OwnQueue, ProbeIdleElseCentral, Random, SingleLock, TwoChoices, WorkStealing,
};
use stanchion_threadpool_loom::{Plan, Strategy, Task, WakeTarget, WorkerSlot};

/// Three places, and a threshold.
fn plan(threshold: usize) -> Plan {
    Plan { threshold: Some(threshold), ..Plan::new(3) }
}

/// A strategy in which places 0 and 1 have a free block each, or both have given theirs to a central list.
fn warm<S: Strategy>() -> Arc<S> {
    let strategy = S::new(&plan(4));
    let tasks = [0, 1].map(|index| {
        let _ = strategy.create(Some(&slot(index)), fill(9));
        strategy.next(&slot(index), None, &mut None).unwrap()
    });
    for (index, task) in tasks.into_iter().enumerate() {
        strategy.release(Some(&slot(index)), task);
    }
    Arc::new(strategy)
}

fn model() -> Model {
    Model::new().objects(200)
}

/// The place of this number; a thread that has started, or ended, hands it on.
fn slot(index: usize) -> WorkerSlot {
    // SAFETY: in each model a number is with one thread at a time.
    unsafe { WorkerSlot::new(index) }
}

fn fill(value: usize) -> impl FnOnce(&Task) {
    // SAFETY: whoever fills a task has it alone.
    move |task| unsafe { task.words().write(value) }
}

fn value(task: &Task) -> usize {
    // SAFETY: the task was filled, and is the caller's.
    unsafe { task.words().read() }
}

/// Starts a task, and does not finish it.
fn start<S: Strategy>(strategy: &S, slot: &WorkerSlot) -> Option<usize> {
    strategy.next(slot, None, &mut None).as_ref().map(value)
}

fn beside<S: Strategy, R: Send + 'static>(
    strategy: &Arc<S>,
    body: impl FnOnce(&S) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let strategy = strategy.clone();
    thread::spawn(move || body(&strategy))
}

/// What places 0 to 2 still find, together with what was found before, is what was created.
fn account<S: Strategy>(strategy: &S, found: &[Option<usize>], created: &[usize]) {
    let mut all: Vec<usize> = found.iter().copied().flatten().collect();
    for index in 0..3 {
        let _ = strategy.leave(&slot(index));
    }
    for index in 0..3 {
        all.extend(std::iter::from_fn(|| start(strategy, &slot(index))));
    }
    all.sort_unstable();
    assert_eq!(all, created);
    assert!(strategy.is_empty());
}

fn a_creator_meets_a_starter<S: Strategy>() {
    let strategy = warm::<S>();
    let other = beside(&strategy, |strategy| start(strategy, &slot(1)));
    let _ = strategy.create(Some(&slot(0)), fill(1));
    account(&*strategy, &[other.join().unwrap()], &[1]);
}

fn two_create<S: Strategy>() {
    let strategy = warm::<S>();
    let other = beside(&strategy, |strategy| {
        let _ = strategy.create(Some(&slot(1)), fill(1));
    });
    let _ = strategy.create(Some(&slot(0)), fill(2));
    other.join().unwrap();
    account(&*strategy, &[], &[1, 2]);
}

fn two_start<S: Strategy>() {
    let strategy = warm::<S>();
    let _ = strategy.create(Some(&slot(0)), fill(1));
    let other = beside(&strategy, |strategy| start(strategy, &slot(1)));
    let mine = start(&*strategy, &slot(0));
    let others = other.join().unwrap();
    assert!(mine.is_some() != others.is_some(), "it was ready all the time");
    account(&*strategy, &[mine, others], &[1]);
}

fn two_start_of_three<S: Strategy>() {
    let strategy = warm::<S>();
    for new in 1..=3 {
        let _ = strategy.create(Some(&slot(0)), fill(new));
    }
    let other = beside(&strategy, |strategy| start(strategy, &slot(1)));
    let mine = start(&*strategy, &slot(0));
    let others = other.join().unwrap();
    assert!(mine.is_some(), "more tasks were ready here than anybody could take");
    account(&*strategy, &[mine, others], &[1, 2, 3]);
}

fn two_create_and_one_starts<S: Strategy>() {
    let strategy = warm::<S>();
    let others = [0, 1].map(|index| {
        beside(&strategy, move |strategy| {
            let _ = strategy.create(Some(&slot(index)), fill(index));
        })
    });
    let found = start(&*strategy, &slot(2));
    others.into_iter().for_each(|other| other.join().unwrap());
    account(&*strategy, &[found], &[0, 1]);
}

/// Place 1 has had two tasks and finishes them, which is one more than it keeps; place 0 needs blocks meanwhile.
fn blocks_go_through_the_pool<S: Strategy>() {
    let strategy = Arc::new(S::new(&plan(2)));
    let held: Vec<Task> = (0..2)
        .map(|new| {
            let _ = strategy.create(Some(&slot(1)), fill(new));
            strategy.next(&slot(1), None, &mut None).unwrap()
        })
        .collect();
    let other = beside(&strategy, move |strategy| {
        for task in held {
            strategy.release(Some(&slot(1)), task);
        }
    });
    let _ = strategy.create(Some(&slot(0)), fill(2));
    other.join().unwrap();
    let _ = strategy.create(Some(&slot(0)), fill(3));
    account(&*strategy, &[], &[2, 3]);
    assert!(
        strategy.blocks() <= 4,
        "two in use, and two for each of two places, of which one had none"
    );
}

fn two_need_a_slab<S: Strategy>() {
    let strategy = Arc::new(S::new(&plan(2)));
    let other = beside(&strategy, |strategy| {
        let _ = strategy.create(Some(&slot(1)), fill(1));
    });
    let _ = strategy.create(Some(&slot(0)), fill(2));
    other.join().unwrap();
    assert_eq!(strategy.blocks(), 2);
    account(&*strategy, &[], &[1, 2]);
}

/// A place that finds nothing sleeps; the creator tells whom it was told to tell.
fn an_idle_place_is_told<S: Strategy>() {
    let strategy = warm::<S>();
    let events = Arc::new(EventCount::new());
    let sleeper = {
        let events = events.clone();
        beside(&strategy, move |strategy| {
            let slot = slot(1);
            loop {
                if let Some(found) = start(strategy, &slot) {
                    return found;
                }
                strategy.idle(&slot);
                let key = events.prepare();
                if strategy.is_ready(&slot) {
                    events.cancel(key);
                } else {
                    events.wait(key);
                }
            }
        })
    };
    match strategy.create(Some(&slot(0)), fill(1)) {
        WakeTarget::Any(ready) => assert_eq!(ready, 1),
        WakeTarget::Lone => {}
        WakeTarget::Worker(index) => assert_eq!(index, 1),
    }
    events.notify_one();
    assert_eq!(sleeper.join().unwrap(), 1);
    account(&*strategy, &[], &[]);
}

/// A strategy to which these places are idle: a creator finds them, for there are two others and it probes two.
fn with_idle<S: Strategy>(slots: &[usize]) -> Arc<S> {
    let strategy = warm::<S>();
    for &index in slots {
        strategy.idle(&slot(index));
    }
    strategy
}

fn a_creator_meets_a_place_that_looks<S: Strategy>() {
    let strategy = with_idle::<S>(&[1]);
    let other = beside(&strategy, |strategy| start(strategy, &slot(1)));
    let told = strategy.create(Some(&slot(0)), fill(1));
    let found = other.join().unwrap();
    match told {
        WakeTarget::Worker(index) => {
            assert_eq!((index, found), (1, Some(1)), "it was handed over before")
        }
        WakeTarget::Any(_) | WakeTarget::Lone => {}
    }
    account(&*strategy, &[found], &[1]);
}

fn a_creator_meets_a_place_that_leaves<S: Strategy>() {
    let strategy = with_idle::<S>(&[1]);
    let other = beside(&strategy, |strategy| strategy.leave(&slot(1)));
    let told = strategy.create(Some(&slot(0)), fill(1));
    let left = other.join().unwrap();
    match told {
        WakeTarget::Worker(index) => assert_eq!((index, left), (1, Some(WakeTarget::Any(1)))),
        WakeTarget::Any(ready) => assert_eq!((ready, left), (1, None)),
        WakeTarget::Lone => assert_eq!(left, None),
    }
    assert_eq!(start(&*strategy, &slot(2)), Some(1), "nobody's in particular any more");
    account(&*strategy, &[], &[]);
}

fn two_creators_and_an_idle_place<S: Strategy>() {
    let strategy = with_idle::<S>(&[2]);
    let creates = [0, 1].map(|index| {
        beside(&strategy, move |strategy| strategy.create(Some(&slot(index)), fill(index)))
    });
    let found = start(&*strategy, &slot(2));
    let tolds = creates.map(|creates| creates.join().unwrap());
    let handed = tolds.iter().filter(|&&told| told == WakeTarget::Worker(2)).count();
    assert!(handed <= 1 && (handed == 0 || found.is_some()));
    account(&*strategy, &[found], &[0, 1]);
}

fn a_creator_and_two_that_leave() {
    let strategy = with_idle::<IdleQueue<Lock>>(&[1, 2]);
    let leaves =
        [1, 2].map(|index| beside(&strategy, move |strategy| strategy.leave(&slot(index))));
    let told = strategy.create(Some(&slot(0)), fill(1));
    let left = leaves.map(|leaves| leaves.join().unwrap());
    // Handed from one to the next, or not, the last who was told knows where it is.
    let handed = left.iter().flatten().count() + usize::from(matches!(told, WakeTarget::Worker(_)));
    assert!(handed == 0 || left.iter().flatten().any(|told| *told == WakeTarget::Any(1)));
    assert_eq!(start(&*strategy, &slot(0)), Some(1));
    account(&*strategy, &[], &[]);
}

/// Models of one strategy, or of one kind of them.
macro_rules! models {
    ($module:ident: $strategy:ty; $($name:ident),* ; $($bounded:ident as $called:ident),*) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $name() {
                    let name = concat!(stringify!($module), "::", stringify!($name));
                    explore(name, model(), super::$name::<$strategy>);
                }
            )*
            $(
                #[test]
                fn $called() {
                    let name = concat!(stringify!($module), "::", stringify!($called));
                    explore(name, model().preemptions(3), super::$bounded::<$strategy>);
                }
            )*
        }
    };
}

macro_rules! each {
    ($($module:ident: $strategy:ty;)*) => {$(
        models! {
            $module: $strategy;
            a_creator_meets_a_starter, two_create, two_start, two_start_of_three;
            two_create_and_one_starts as two_create_and_one_starts_bounded
        }
    )*};
}

each! {
    single_lock: SingleLock<Lock>;
    multiple_locks: MultipleLocks<Lock>;
    local_free_list: LocalFreeList<Lock>;
    idle_queue: IdleQueue<Lock>;
    local_ready_queue: LocalReadyQueue<Lock>;
    local_ready_queue_random: LocalReadyQueue<Lock, Fifo, Random>;
    local_ready_queue_two_choices: LocalReadyQueue<Lock, Lifo, TwoChoices>;
    central_else_local: CentralElseLocal<Lock>;
    probe_idle_else_central: ProbeIdleElseCentral<Lock>;
    work_stealing: WorkStealing;
}

models! { free_blocks: LocalFreeList<Lock>; blocks_go_through_the_pool; two_need_a_slab as two_need_a_slab_bounded }
models! { idle: IdleQueue<Lock, Fifo>; ; an_idle_place_is_told as an_idle_place_is_told_bounded }
models! { local_ready: LocalReadyQueue<Lock, Fifo, OwnQueue>; ; an_idle_place_is_told as an_idle_place_is_told_bounded }

models! {
    probing: ProbeIdleElseCentral<Lock>;
    a_creator_meets_a_place_that_looks, a_creator_meets_a_place_that_leaves;
    an_idle_place_is_told as an_idle_place_is_told_bounded
}

#[test]
fn a_creator_meets_a_place_that_looks_in_the_idle_queue() {
    let name = "a_creator_meets_a_place_that_looks_in_the_idle_queue";
    explore(name, model(), a_creator_meets_a_place_that_looks::<IdleQueue<Lock>>);
}

#[test]
fn a_creator_meets_a_place_that_leaves_the_idle_queue() {
    let name = "a_creator_meets_a_place_that_leaves_the_idle_queue";
    explore(name, model(), a_creator_meets_a_place_that_leaves::<IdleQueue<Lock>>);
}

#[test]
fn two_creators_and_an_idle_place_bounded() {
    let name = "two_creators_and_an_idle_place_bounded";
    explore(name, model().preemptions(1), two_creators_and_an_idle_place::<IdleQueue<Lock>>);
}

#[test]
fn two_creators_and_a_place_that_is_probed_bounded() {
    let name = "two_creators_and_a_place_that_is_probed_bounded";
    let body = two_creators_and_an_idle_place::<ProbeIdleElseCentral<Lock>>;
    explore(name, model().preemptions(2), body);
}

#[test]
fn a_creator_and_two_that_leave_bounded() {
    let name = "a_creator_and_two_that_leave_bounded";
    explore(name, model().preemptions(2), a_creator_and_two_that_leave);
}
