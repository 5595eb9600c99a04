//! The duties of every strategy: tasks in are tasks out, each once.
//!
//! They are tested for each strategy of the table, and for other parameters listed at the end.

use crate::common;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use common::{drain, fill, look, slots, value};
use proptest::prelude::{ProptestConfig, any, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use stanchion_competitive::RawPolicyMutex;
use stanchion_spin::{TestAndSet, Ticket};
use stanchion_threadpool::strategy::{
    CentralElseLocal, Fifo, IdleQueue, Lifo, LocalFreeList, LocalReadyQueue, MultipleLocks,
    OwnQueue, ProbeIdleElseCentral, Random, SingleLock, TwoChoices, WorkStealing,
};
use stanchion_threadpool::{Plan, Strategy, Task, WakeTarget, WorkerSlot};

const SLOTS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Creates a task, by a worker or by a thread without a slot; to run last or not.
    Create(Option<usize>, bool),
    /// Starts a task, and finishes the one before if there is one.
    Next(usize),
    Release(usize),
    ReleaseOutside(usize),
    Idle(usize),
    Leave(usize),
}

fn step() -> impl Generator<Value = Step> {
    let slot = 0..SLOTS;
    prop_oneof![
        4 => (proptest::option::of(slot.clone()), any::<bool>()).prop_map(|(slot, last)| Step::Create(slot, last)),
        4 => slot.clone().prop_map(Step::Next),
        1 => slot.clone().prop_map(Step::Release),
        1 => slot.clone().prop_map(Step::ReleaseOutside),
        2 => slot.clone().prop_map(Step::Idle),
        1 => slot.prop_map(Step::Leave),
    ]
}

/// The knowledge about a strategy from what was done with it.
#[derive(Default)]
struct Known {
    created: usize,
    /// Tasks that any worker may take.
    ready: BTreeSet<usize>,
    /// Tasks for one worker.
    handed: BTreeMap<usize, BTreeSet<usize>>,
    most_in_use: usize,
}

impl Known {
    fn told(&mut self, tasks: BTreeSet<usize>, told: WakeTarget) {
        match told {
            WakeTarget::Any(ready) => {
                assert!(ready >= 1, "there is one at least where the last one was put");
                self.ready.extend(tasks);
            }
            WakeTarget::Lone => self.ready.extend(tasks),
            WakeTarget::Worker(slot) => self.handed.entry(slot).or_default().extend(tasks),
        }
    }

    fn ready(&self) -> usize {
        self.ready.len() + self.handed.values().map(BTreeSet::len).sum::<usize>()
    }

    fn taken(&mut self, slot: usize, task: usize) {
        let handed = self.handed.get_mut(&slot).is_some_and(|tasks| tasks.remove(&task));
        assert!(handed || self.ready.remove(&task), "{task} is not ready, or another worker's");
    }

    fn none_for(&self, slot: usize) -> bool {
        self.ready.is_empty() && self.handed.get(&slot).is_none_or(BTreeSet::is_empty)
    }
}

/// One thread in the shoes of all workers.
fn follows<S: Strategy>(steps: &[Step], plan: &Plan) {
    let (strategy, slots) = (S::new(plan), slots(SLOTS));
    let mut known = Known::default();
    let mut hands: [Vec<Task>; SLOTS] = Default::default();
    for &step in steps {
        match step {
            Step::Create(slot, last) => {
                let task = known.created;
                known.created += 1;
                let slot = slot.map(|slot| &slots[slot]);
                let told = if last {
                    strategy.create_last(slot, |block| fill(block, task))
                } else {
                    strategy.create(slot, |block| fill(block, task))
                };
                known.told([task].into(), told);
            }
            Step::Next(slot) => {
                let ready = strategy.is_ready(&slots[slot]);
                let next = look(&strategy, &slots[slot], hands[slot].pop());
                assert!(ready || next.is_none(), "it was said to find nothing");
                match next {
                    Some(task) => {
                        known.taken(slot, value(&task));
                        hands[slot].push(task);
                    }
                    None => assert!(known.none_for(slot), "a task was not found"),
                }
            }
            Step::Release(slot) => {
                if let Some(task) = hands[slot].pop() {
                    strategy.release(Some(&slots[slot]), task);
                }
            }
            Step::ReleaseOutside(slot) => {
                if let Some(task) = hands[slot].pop() {
                    strategy.release(None, task);
                }
            }
            Step::Idle(slot) => strategy.idle(&slots[slot]),
            Step::Leave(slot) => {
                let told = strategy.leave(&slots[slot]);
                let left = known.handed.remove(&slot).unwrap_or_default();
                match told {
                    Some(told) => known.told(left, told),
                    None => assert!(left.is_empty(), "a task is lost"),
                }
            }
        }
        assert_eq!(strategy.len(), known.ready());
        let running: usize = hands.iter().map(Vec::len).sum();
        known.most_in_use = known.most_in_use.max(known.ready() + running);
    }
    // The most in use, what a threshold and four lists allow, and what idle workers hold. The
    // highest threshold that a strategy chooses for itself is 64.
    let most = known.most_in_use + (SLOTS + 1) * plan.threshold.unwrap_or(64).max(2) + SLOTS;
    assert!(strategy.blocks() <= most, "{} blocks, not {most}", strategy.blocks());

    let left: BTreeSet<_> = drain(&strategy, &slots).into_iter().collect();
    let expected = known.ready.iter().chain(known.handed.values().flatten()).copied();
    assert_eq!(left, expected.collect());
}

/// `SLOTS` threads that create and run, and one that only creates: every task is run once, and
/// no task waits for ever.
fn runs_each_task_once<S: Strategy>(plan: &Plan) {
    const EACH: usize = 2_000;
    const ALL: usize = EACH * (SLOTS + 1);
    let strategy = S::new(plan);
    let runs: Vec<AtomicU8> = (0..ALL).map(|_| AtomicU8::new(0)).collect();
    let finished = AtomicUsize::new(0);
    let (strategy, runs, finished) = (&strategy, &runs, &finished);
    std::thread::scope(|scope| {
        for index in 0..SLOTS {
            scope.spawn(move || {
                // SAFETY: the only one of this number for this strategy.
                let slot = unsafe { WorkerSlot::new(index) };
                let mut left = index * EACH..(index + 1) * EACH;
                let mut task: Option<Task> = None;
                while finished.load(Relaxed) < ALL {
                    // Bursts of different lengths, so that there are times with idle workers and
                    // times with backlog.
                    for new in left.by_ref().take(finished.load(Relaxed) % 7) {
                        let _ = strategy.create(Some(&slot), |task| fill(task, new));
                    }
                    task = strategy.next(&slot, task.take(), &mut None);
                    if let Some(task) = &task {
                        runs[value(task)].fetch_add(1, Relaxed);
                        finished.fetch_add(1, Relaxed);
                    } else if left.is_empty() {
                        strategy.idle(&slot);
                        while !strategy.is_ready(&slot) && finished.load(Relaxed) < ALL {
                            std::thread::yield_now();
                        }
                    } else if let Some(new) = left.next() {
                        let _ = strategy.create_last(Some(&slot), |task| fill(task, new));
                    }
                }
                assert_eq!(strategy.leave(&slot), None, "all tasks are finished");
            });
        }
        for new in SLOTS * EACH..ALL {
            let _ = strategy.create(None, |task| fill(task, new));
        }
    });
    assert!(runs.iter().all(|runs| runs.load(Relaxed) == 1), "a task was lost or run twice");
    assert!(strategy.is_empty());
}

fn refuses<S: Strategy>(plan: &Plan, why: &str) {
    let refused = catch_unwind(AssertUnwindSafe(|| drop(S::new(plan)))).unwrap_err();
    let message = refused.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| refused.downcast_ref::<&str>().copied()).unwrap();
    assert!(message.starts_with(why), "{message}");
}

fn refuses_wrong_plans<S: Strategy>() {
    refuses::<S>(&Plan::new(0), "Plan::slots is 0");
    refuses::<S>(&Plan { active: 3, ..Plan::new(2) }, "Plan::active is 3, but Plan::slots only 2");
    refuses::<S>(&Plan { threshold: Some(0), ..Plan::new(2) }, "Plan::threshold is 0");
    refuses::<S>(&Plan { queues: Some(0), ..Plan::new(2) }, "Plan::queues is 0");
    refuses::<S>(&Plan { queues: Some(3), ..Plan::new(2) }, "Plan::queues is 3, but");
    let strategy = S::new(&Plan::new(1));
    assert!(!S::NAME.is_empty() && strategy.is_empty() && strategy.blocks() == 0);
}

macro_rules! strategies {
    ($($name:ident: $type:ty;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
                #[test]
                fn follows_any_steps(
                    steps in proptest::collection::vec(step(), 1..120),
                    threshold in proptest::option::of(1_usize..9),
                    queues in proptest::option::of(1..=SLOTS),
                ) {
                    follows::<$type>(&steps, &Plan { threshold, queues, ..Plan::new(SLOTS) });
                }
            }

            #[test]
            fn runs_each_task_once() {
                super::runs_each_task_once::<$type>(&Plan::new(SLOTS));
                super::runs_each_task_once::<$type>(&Plan {
                    threshold: Some(16),
                    queues: Some(2),
                    ..Plan::new(SLOTS)
                });
            }

            #[test]
            fn refuses_wrong_plans() {
                super::refuses_wrong_plans::<$type>();
            }
        }
    )*};
}

/// Defines the tests of each strategy of the table.
macro_rules! of_the_table {
    ([] $({ $name:ident: $strategy:ty, $($rest:tt)* })+) => {
        strategies! { $($name: $strategy;)+ }
    };
}

stanchion_threadpool::__strategies!(of_the_table);

strategies! {
    single_lock_lifo: SingleLock<TestAndSet, Lifo>;
    multiple_locks_ticket_lifo: MultipleLocks<Ticket, Lifo>;
    local_free_list_lifo: LocalFreeList<TestAndSet, Lifo>;
    idle_queue_lifo: IdleQueue<TestAndSet, Lifo>;
    local_ready_queue_random: LocalReadyQueue<TestAndSet, Fifo, Random>;
    local_ready_queue_two_choices_lifo: LocalReadyQueue<RawPolicyMutex, Lifo, TwoChoices>;
    local_ready_queue_own_lifo: LocalReadyQueue<RawPolicyMutex, Lifo, OwnQueue>;
    central_else_local_lifo: CentralElseLocal<TestAndSet, Lifo>;
    probe_idle_else_central_lifo: ProbeIdleElseCentral<TestAndSet, Lifo>;
}

/// A worker that runs only the tasks of one other worker must not carry off more than it runs.
#[test]
fn a_worker_that_asks_for_the_tasks_of_one_other_takes_one() {
    let ready = WorkStealing::new(&Plan::new(2));
    let slots = slots(2);
    for value in 0..8 {
        let _ = ready.create(Some(&slots[0]), |task| fill(task, value));
    }
    let task = ready.next_from(&slots[1], 0).unwrap();
    assert_eq!(value(&task), 0, "the oldest");
    let mut left = Vec::new();
    let mut finished = None;
    while let Some(task) = look(&ready, &slots[0], finished.take()) {
        left.push(value(&task));
        finished = Some(task);
    }
    assert_eq!(left, [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(ready.steals(0), (0, 0), "nothing was to be fetched back");
    ready.release(Some(&slots[1]), task);
}
