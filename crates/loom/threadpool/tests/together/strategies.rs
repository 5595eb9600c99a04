//! Models of the strategies: their tasks and blocks between threads.
//!
//! Each line names a model, its threads, and the strategies that it checks.
//!
//! - `a_creator_meets_a_starter`: two threads. Checks: all.
//! - `two_create`: two, then one worker starts both tasks. Checks: all.
//! - `two_start`: two, and one task is ready. Checks: all.
//! - `two_start_of_three`: two, and three tasks are ready at one worker. Checks: all.
//! - `two_create_and_one_starts_bounded`: three. Checks: all.
//! - `blocks_go_through_the_pool`: one finishes more than it may keep, the other creates. Checks:
//!   local free lists.
//! - `two_need_a_slab`: two that find no block at all. Checks: local free lists.
//! - `an_idle_worker_is_woken`: a creator, and a worker that goes to sleep. Checks: idle queue,
//!   local ready queues, probing.
//! - `a_creator_meets_a_worker_that_looks`: a creator, and an idle worker that can be handed a
//!   task. Checks: idle queue, probing.
//! - `a_creator_meets_a_worker_that_leaves`: likewise. Checks: idle queue, probing.
//! - `two_creators_and_an_idle_worker_bounded`: three. Checks: idle queue.
//! - `two_creators_and_a_worker_that_is_probed_bounded`: three. Checks: probing.
//! - `a_creator_and_two_that_leave_bounded`: three. Checks: idle queue.
//!
//! A bounded model has three preemptions. The model of a creator and two that leave, and that of
//! two creators and a worker that is probed, have two. That of two creators and an idle worker in a
//! queue has one.
//!
//! Tasks carry a value in a checked cell, and blocks are few: a thread that is given one too early
//! fails.

use stanchion_competitive::EventCount;
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::{Lock, beside, explore};
use stanchion_threadpool_loom::strategy::{
    Fifo, IdleQueue, Lifo, LocalFreeList, LocalReadyQueue, OwnQueue, ProbeIdleElseCentral, Random,
    TwoChoices,
};
use stanchion_threadpool_loom::{Plan, Strategy, Task, WakeTarget, WorkerSlot};

/// Three workers, and a threshold.
fn plan(threshold: usize) -> Plan {
    Plan { threshold: Some(threshold), ..Plan::new(3) }
}

/// A strategy in which workers 0 and 1 have a free block each, or both have given theirs to a
/// central list.
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

/// The worker of this number; a thread that has started, or ended, hands it on.
fn slot(index: usize) -> WorkerSlot {
    // SAFETY: in each model a number is with one thread at a time.
    unsafe { WorkerSlot::new(index) }
}

fn fill(value: usize) -> impl FnOnce(&Task) {
    // SAFETY: the thread that fills a task has it alone.
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

/// Checks that all created tasks were found: before, or now by workers 0 to 2.
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
    assert!(mine.is_some(), "more tasks were ready here than any worker could take");
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

/// Worker 1 has had two tasks and finishes them, which is one more than it keeps; worker 0 needs
/// blocks meanwhile.
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
        "two in use, and two for each of two slots, of which one had none"
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

/// A worker that finds nothing sleeps; the creator wakes the workers that the strategy names.
fn an_idle_worker_is_woken<S: Strategy>() {
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

/// A strategy to which these workers are idle: a creator finds them, for there are two others and
/// it probes two.
fn with_idle<S: Strategy>(slots: &[usize]) -> Arc<S> {
    let strategy = warm::<S>();
    for &index in slots {
        strategy.idle(&slot(index));
    }
    strategy
}

fn a_creator_meets_a_worker_that_looks<S: Strategy>() {
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

fn a_creator_meets_a_worker_that_leaves<S: Strategy>() {
    let strategy = with_idle::<S>(&[1]);
    let other = beside(&strategy, |strategy| strategy.leave(&slot(1)));
    let told = strategy.create(Some(&slot(0)), fill(1));
    let left = other.join().unwrap();
    match told {
        WakeTarget::Worker(index) => assert_eq!((index, left), (1, Some(WakeTarget::Any(1)))),
        WakeTarget::Any(ready) => assert_eq!((ready, left), (1, None)),
        WakeTarget::Lone => assert_eq!(left, None),
    }
    assert_eq!(start(&*strategy, &slot(2)), Some(1), "any worker can take it now");
    account(&*strategy, &[], &[]);
}

fn two_creators_and_an_idle_worker<S: Strategy>() {
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
    // Handed from one to the next, or not, the last worker that was notified knows where it is.
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

/// Defines the models of each strategy of the table.
macro_rules! of_the_table {
    ([] $({ $module:ident: $strategy:ty, $($rest:tt)* })+) => {
        each! { $($module: $strategy;)+ }
    };
}

stanchion_threadpool_loom::__strategies!(of_the_table, lock: Lock);

// Other parameters than the table's.
each! {
    local_ready_queue_random: LocalReadyQueue<Lock, Fifo, Random>;
    local_ready_queue_two_choices: LocalReadyQueue<Lock, Lifo, TwoChoices>;
}

models! { free_blocks: LocalFreeList<Lock>; blocks_go_through_the_pool; two_need_a_slab as two_need_a_slab_bounded }
models! { idle: IdleQueue<Lock, Fifo>; ; an_idle_worker_is_woken as an_idle_worker_is_woken_bounded }
models! { local_ready: LocalReadyQueue<Lock, Fifo, OwnQueue>; ; an_idle_worker_is_woken as an_idle_worker_is_woken_bounded }

models! {
    probing: ProbeIdleElseCentral<Lock>;
    a_creator_meets_a_worker_that_looks, a_creator_meets_a_worker_that_leaves;
    an_idle_worker_is_woken as an_idle_worker_is_woken_bounded
}

#[test]
fn a_creator_meets_a_worker_that_looks_in_the_idle_queue() {
    let name = "a_creator_meets_a_worker_that_looks_in_the_idle_queue";
    explore(name, model(), a_creator_meets_a_worker_that_looks::<IdleQueue<Lock>>);
}

#[test]
fn a_creator_meets_a_worker_that_leaves_the_idle_queue() {
    let name = "a_creator_meets_a_worker_that_leaves_the_idle_queue";
    explore(name, model(), a_creator_meets_a_worker_that_leaves::<IdleQueue<Lock>>);
}

#[test]
fn two_creators_and_an_idle_worker_bounded() {
    let name = "two_creators_and_an_idle_worker_bounded";
    explore(name, model().preemptions(1), two_creators_and_an_idle_worker::<IdleQueue<Lock>>);
}

#[test]
fn two_creators_and_a_worker_that_is_probed_bounded() {
    let name = "two_creators_and_a_worker_that_is_probed_bounded";
    let body = two_creators_and_an_idle_worker::<ProbeIdleElseCentral<Lock>>;
    explore(name, model().preemptions(2), body);
}

#[test]
fn a_creator_and_two_that_leave_bounded() {
    let name = "a_creator_and_two_that_leave_bounded";
    explore(name, model().preemptions(2), a_creator_and_two_that_leave);
}
