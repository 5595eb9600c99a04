//! Tests of address spaces, their processors, and their events.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Presence};
use stanchion_simulator::os::activations::{Next, Space, Upcall};
use stanchion_simulator::{Activity, Failure, Machine, Simulation, ThreadId, Time, machines};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

const MS: u64 = 1_000_000;

/// Upcalls of 100 us, switches of 10, quanta of 10 ms.
fn machine(processors: usize) -> Machine {
    let mut machine = machines::modern(processors);
    machine.scheduling.upcall = Time::micros(100);
    machine.scheduling.switch = Time::micros(10);
    machine.scheduling.quantum = Time::millis(10);
    machine
}

enum Work {
    Job(Box<dyn FnOnce()>),
    Thread(ThreadId),
}

/// A program's own scheduler: one list of what could run. It is used without a wait in between, so
/// it needs no lock.
#[derive(Default)]
struct Scheduler {
    /// The work that could run.
    ready: RefCell<VecDeque<Work>>,
    /// The events, with their time and activation.
    upcalls: RefCell<Vec<(u64, ThreadId, Vec<Upcall>)>>,
}

impl Scheduler {
    fn new(jobs: Vec<Box<dyn FnOnce()>>) -> Rc<Self> {
        let ready = RefCell::new(jobs.into_iter().map(Work::Job).collect());
        Rc::new(Self { ready, upcalls: RefCell::default() })
    }

    fn same(count: usize, job: impl Fn(usize) + 'static) -> Rc<Self> {
        let job = Rc::new(job);
        let one = |number| -> Box<dyn FnOnce()> {
            let job = Rc::clone(&job);
            Box::new(move || job(number))
        };
        Self::new((0..count).map(one).collect())
    }

    fn handle(&self, events: &[Upcall]) -> Next {
        self.upcalls.borrow_mut().push((inside::now(), inside::current(), events.to_vec()));
        for event in events {
            if let Upcall::Preempted(thread) | Upcall::Unblocked(thread) = event {
                self.ready.borrow_mut().push_front(Work::Thread(*thread));
            }
        }
        loop {
            let next = self.ready.borrow_mut().pop_front();
            match next {
                Some(Work::Job(job)) => job(),
                Some(Work::Thread(thread)) => return Next::Resume(thread),
                None => return Next::Idle,
            }
        }
    }

    fn space(self: &Rc<Self>, name: &str, priority: i32, wanted: usize) -> Space {
        let own = Rc::clone(self);
        Space::new(name, priority, wanted, move |events| own.handle(events))
    }

    fn count(&self, is: impl Fn(&Upcall) -> bool) -> usize {
        self.upcalls
            .borrow()
            .iter()
            .flat_map(|(_, _, events)| events)
            .filter(|event| is(event))
            .count()
    }
}

fn added(event: &Upcall) -> bool {
    *event == Upcall::AddProcessor
}

fn preempted(event: &Upcall) -> bool {
    matches!(event, Upcall::Preempted(_))
}

#[test]
fn a_space_gets_what_it_wants_and_gives_back_what_it_does_not_need() {
    let run = Simulation::new(machine(4)).run(|| {
        let scheduler = Scheduler::same(6, |_| inside::work(10 * MS));
        let space = scheduler.space("jobs", 0, 3);
        assert_eq!((space.wanted(), space.processors()), (3, 3));
        inside::sleep(MS);
        assert_eq!(scheduler.count(added), 3);
        inside::sleep(30 * MS);
        assert_eq!((space.wanted(), space.processors()), (0, 0));
        // No more work, and one more processor: it is given back at once.
        space.request(1);
        inside::sleep(MS);
        assert_eq!((space.wanted(), scheduler.count(added)), (0, 4));
    });
    let statistics = run.unwrap().statistics;
    assert!(statistics.elapsed < Time::millis(33), "{}", statistics.elapsed);
    let activations = &statistics.threads[1..];
    assert_eq!(activations.len(), 4);
    assert!(activations.iter().all(|thread| thread.name.as_deref() == Some("jobs")));
    let useful = activations.iter().map(|thread| thread.times.of(Activity::Useful)).sum::<Time>();
    assert_eq!(useful, Time::millis(60));
}

#[test]
fn a_thread_that_blocks_leaves_its_processor_to_another_and_goes_on_when_it_is_resumed() {
    let run = Simulation::new(machine(2)).run(|| {
        // The body keeps processor 0.
        let word = Rc::new(Word::new(0));
        let waits = Rc::clone(&word);
        let scheduler = Scheduler::new(vec![
            Box::new(move || {
                inside::park(waits.address(), || false, u64::MAX);
                inside::work(2 * MS);
            }),
            Box::new(|| inside::work(8 * MS)),
        ]);
        scheduler.space("jobs", 0, 1);
        inside::work(4 * MS);
        let first = scheduler.upcalls.borrow()[0].1;
        assert_eq!(inside::presence(first.index()), Presence::Blocked);
        inside::wake(word.address(), 1);
        inside::work(10 * MS);
        let upcalls = scheduler.upcalls.borrow().clone();
        let events: Vec<_> = upcalls.iter().map(|(_, _, events)| events.clone()).collect();
        let second = upcalls[1].1;
        assert_eq!(
            events,
            [
                vec![Upcall::AddProcessor],
                vec![Upcall::Blocked(first)],
                // The processor that tells of it has to be taken from the other.
                vec![Upcall::Unblocked(first), Upcall::Preempted(second)],
            ]
        );
        assert_ne!(inside::presence(first.index()), Presence::Blocked);
    });
    let statistics = run.unwrap().statistics;
    assert_eq!(statistics.threads[1].times.of(Activity::Useful), Time::millis(2));
    assert_eq!(
        statistics.threads[2].times.of(Activity::Useful),
        Time::millis(8),
        "nothing is lost"
    );
}

#[test]
fn a_second_space_takes_half_and_gives_it_back() {
    let run = Simulation::new(machine(5)).run(|| {
        inside::pin(Some(0));
        let first = Scheduler::same(40, |_| inside::work(5 * MS));
        let one = first.space("first", 0, 4);
        inside::work(12 * MS);
        assert_eq!(one.processors(), 4);
        let second = Scheduler::same(8, |_| inside::work(5 * MS));
        let two = second.space("second", 0, 4);
        inside::work(2 * MS);
        assert_eq!((one.processors(), two.processors()), (2, 2));
        assert!(first.count(preempted) >= 2, "it was notified of the processors it lost");
        inside::work(30 * MS);
        assert_eq!((one.processors(), two.processors()), (4, 0));
        assert_eq!(first.count(added), 6);
        one
    });
    let run = run.unwrap();
    let useful = |name: &str| -> Time {
        let own =
            run.statistics.threads.iter().filter(|thread| thread.name.as_deref() == Some(name));
        own.map(|thread| thread.times.of(Activity::Useful)).sum()
    };
    assert_eq!((useful("first"), useful("second")), (Time::millis(200), Time::millis(40)));
}

#[test]
fn a_space_of_higher_priority_has_all_it_wants() {
    let run = Simulation::new(machine(4)).run(|| {
        inside::pin(Some(0));
        let low = Scheduler::same(12, |_| inside::work(5 * MS));
        let background = low.space("low", -1, 3);
        inside::work(MS);
        assert_eq!(background.processors(), 3);
        let high = Scheduler::same(6, |_| inside::work(5 * MS));
        let urgent = high.space("high", 1, 3);
        inside::work(MS);
        assert_eq!((background.processors(), urgent.processors()), (0, 3));
        inside::work(12 * MS);
        assert_eq!((background.processors(), urgent.processors()), (3, 0));
        // What it lost while it had no processor it hears with the next one.
        let upcalls = low.upcalls.borrow();
        let later: Vec<_> = upcalls.iter().skip(3).flat_map(|(_, _, events)| events).collect();
        assert!(later.iter().filter(|event| preempted(event)).count() >= 3, "{later:?}");
    });
    run.unwrap();
}

#[test]
fn a_thread_that_only_reads_and_writes_leaves_its_processor_too() {
    let run = Simulation::new(machine(2)).run(|| {
        let word = Rc::new(Word::new(0));
        let low = Scheduler::same(1, move |_| while word.add(1) < 1_000_000 {});
        low.space("low", 0, 1);
        inside::work(MS);
        let high = Scheduler::same(1, |_| inside::work(MS));
        let begin = inside::now();
        high.space("high", 1, 1);
        inside::work(MS);
        let notified = high.upcalls.borrow()[0].0;
        assert!(notified < begin + 120_000, "notified after {} ns", notified - begin);
    });
    run.unwrap();
}

#[test]
fn what_cannot_be_divided_takes_turns() {
    let run = Simulation::new(machine(4)).run(|| {
        inside::pin(Some(0));
        let schedulers: Vec<_> =
            (0..2).map(|_| Scheduler::same(100, |_| inside::work(2 * MS))).collect();
        let spaces: Vec<_> =
            schedulers.iter().map(|scheduler| scheduler.space("jobs", 0, 3)).collect();
        let mut shares = Vec::new();
        for _ in 0..8 {
            inside::work(10 * MS);
            shares.push((spaces[0].processors(), spaces[1].processors()));
        }
        shares
    });
    let shares = run.unwrap().result;
    assert!(shares.contains(&(1, 2)) && shares.contains(&(2, 1)), "{shares:?}");
}

#[test]
fn ordinary_threads_are_a_space_among_others() {
    let run = Simulation::new(machine(4)).run(|| {
        let scheduler = Scheduler::same(40, |_| inside::work(5 * MS));
        let space = scheduler.space("jobs", 0, 4);
        inside::work(MS);
        assert_eq!(space.processors(), 3, "the body has one");
        let made: Vec<_> =
            (0..3).map(|_| inside::spawn(None, None, Box::new(|| inside::work(20 * MS)))).collect();
        inside::work(2 * MS);
        assert_eq!(space.processors(), 2, "half and half");
        made.into_iter().for_each(inside::join);
        assert_eq!(space.processors(), 3);
    });
    run.unwrap();
}

#[test]
fn an_upcall_takes_its_time() {
    let run = Simulation::new(machine(2)).run(|| {
        let begin = inside::now();
        let scheduler = Scheduler::same(1, |_| ());
        scheduler.space("jobs", 0, 1);
        inside::work(MS);
        let (at, _, events) = scheduler.upcalls.borrow()[0].clone();
        assert_eq!(events, [Upcall::AddProcessor]);
        at - begin
    });
    assert_eq!(run.unwrap().result, 110_000, "an upcall and a switch");
}

#[test]
fn a_space_can_have_its_own_activation_interrupted() {
    let run = Simulation::new(machine(2)).run(|| {
        let scheduler = Scheduler::same(1, |_| inside::work(10 * MS));
        let space = scheduler.space("jobs", 0, 1);
        inside::work(2 * MS);
        let long = scheduler.upcalls.borrow()[0].1;
        let urgent = Rc::new(Word::new(0));
        let done = Rc::clone(&urgent);
        let job = move || {
            inside::work(MS);
            done.store(1);
        };
        scheduler.ready.borrow_mut().push_back(Work::Job(Box::new(job)));
        // The handler puts a preempted activation first; the test asks for the other way round.
        let list = scheduler.ready.borrow_mut().pop_front().unwrap();
        space.interrupt(long);
        inside::work(MS / 20);
        scheduler.ready.borrow_mut().push_front(list);
        inside::work(MS / 2);
        assert_eq!(inside::presence(long.index()), Presence::Running, "it was resumed");
        inside::work(11 * MS);
        assert_eq!(urgent.raw(), 1);
        assert_eq!(scheduler.count(preempted), 1);
        space.interrupt(long);
    });
    run.unwrap();
}

#[test]
fn a_thread_that_is_never_resumed_is_reported() {
    let failure = Simulation::new(machine(2))
        .run(|| {
            let slept = Cell::new(false);
            let _space = Space::new("careless", 0, 1, move |_| {
                if !slept.replace(true) {
                    inside::sleep(MS);
                }
                Next::Idle
            });
        })
        .unwrap_err();
    assert!(matches!(failure, Failure::Deadlock { count: 1, .. }), "{failure}");
    let said = "thread 1 'careless' is stopped, and its address space does not resume it";
    assert!(failure.to_string().contains(said), "{failure}");
}

#[test]
fn impossible_requests_are_refused() {
    let cases: [(fn(), &str); 3] = [
        (
            || {
                let main = inside::current();
                let _space = Space::new("greedy", 0, 1, move |_| Next::Resume(main));
                inside::work(MS);
            },
            "thread 0 was to be resumed, and is not a stopped activation of the same address space",
        ),
        (
            || {
                let space = Space::new("small", 0, 0, |_| Next::Idle);
                space.interrupt(inside::current());
            },
            "thread 0 is not of address space 1",
        ),
        (
            || {
                let _space = Space::new("pinned", 0, 1, |_| {
                    inside::pin(Some(0));
                    Next::Idle
                });
                inside::work(MS);
            },
            "an activation runs where its address space has a processor",
        ),
    ];
    for (case, said) in cases {
        let failure = Simulation::new(machine(2)).run(case).unwrap_err();
        assert!(failure.to_string().contains(said), "{failure}");
    }
    let make = || {
        Scheduler::same(1, |_| ()).space("jobs", 0, 1);
    };
    let mut shared = machine(2);
    shared.scheduling.applications = 2;
    let failure = Simulation::new(shared).run(make).unwrap_err();
    assert!(failure.to_string().contains("address spaces are alone on a machine"), "{failure}");
    let failure = Simulation::new(machine(2)).threads(1).run(make).unwrap_err();
    assert!(matches!(failure, Failure::Threads { limit: 1 }), "{failure}");
}

mod fuzz {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;
    use stanchion_simulator::Statistics;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Work(u64),
        Sleep(u64),
        Add,
        Yield,
        Request,
        Park(u64),
        Wake,
        Ordinary(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let time = || prop_oneof![0..2_000_u64, 0..3 * MS];
        prop_oneof![
            4 => time().prop_map(Step::Work),
            2 => time().prop_map(Step::Sleep),
            3 => Just(Step::Add),
            1 => Just(Step::Yield),
            1 => Just(Step::Request),
            2 => time().prop_map(Step::Park),
            2 => Just(Step::Wake),
            1 => time().prop_map(Step::Ordinary),
        ]
    }

    #[derive(Clone, Debug)]
    struct Program {
        /// The number of processors.
        processors: usize,
        /// The seed.
        seed: u64,
        /// The quantum, in nanoseconds.
        quantum: u64,
        /// Priority, processors wanted, jobs.
        spaces: Vec<(i32, usize, Vec<Vec<Step>>)>,
    }

    fn program() -> impl Strategy<Value = Program> {
        let jobs = proptest::collection::vec(proptest::collection::vec(step(), 0..8), 0..7);
        let spaces = proptest::collection::vec((-1..2_i32, 1..5_usize, jobs), 1..4);
        (1..7_usize, any::<u64>(), 200_000..10 * MS, spaces).prop_map(
            |(processors, seed, quantum, spaces)| Program { processors, seed, quantum, spaces },
        )
    }

    fn perform(step: Step, space: &RefCell<Option<Space>>, word: &Word) {
        match step {
            Step::Work(time) => inside::work(time),
            Step::Sleep(time) => inside::sleep(time),
            Step::Add => drop(word.add(1)),
            Step::Yield => inside::yield_now(),
            Step::Request => {
                let space = *space.borrow();
                space.into_iter().for_each(|space| space.request(1));
            }
            Step::Park(time) => {
                inside::park(word.address(), || false, inside::now() + time);
            }
            Step::Wake => drop(inside::wake(word.address(), 1)),
            Step::Ordinary(time) => {
                inside::spawn(None, None, Box::new(move || inside::work(time)));
            }
        }
    }

    type Upcalls = Vec<(u64, ThreadId, Vec<Upcall>)>;

    fn run(program: &Program) -> Result<(Vec<Upcalls>, u64, Statistics), TestCaseError> {
        let mut machine = machine(program.processors);
        machine.scheduling.quantum = Time::nanos(program.quantum);
        let simulation = Simulation::new(machine).seed(program.seed).time(Time::millis(10_000));
        let spaces = program.spaces.clone();
        let run = simulation.run(move || {
            let word = Rc::new(Word::new(0));
            let done = Rc::new(Word::new(0));
            let schedulers: Vec<_> = spaces
                .iter()
                .map(|(priority, wanted, jobs)| {
                    let own = Rc::new(RefCell::new(None));
                    let jobs = jobs.iter().cloned().map(|steps| -> Box<dyn FnOnce()> {
                        let (own, word, done) =
                            (Rc::clone(&own), Rc::clone(&word), Rc::clone(&done));
                        Box::new(move || {
                            steps.into_iter().for_each(|step| perform(step, &own, &word));
                            done.add(1);
                        })
                    });
                    let scheduler = Scheduler::new(jobs.collect());
                    *own.borrow_mut() = Some(scheduler.space("jobs", *priority, *wanted));
                    scheduler
                })
                .collect();
            (schedulers, done)
        });
        let run = run.map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        let (schedulers, done) = run.result;
        let upcalls =
            schedulers.iter().map(|scheduler| scheduler.upcalls.borrow().clone()).collect();
        Ok((upcalls, done.raw(), run.statistics))
    }

    /// Checks that every stop is reported once, in the order in which it can happen: an activation
    /// is blocked before it unblocks, and its own end is never reported.
    fn check(upcalls: &Upcalls) -> Result<(), TestCaseError> {
        let mut blocked = std::collections::HashSet::new();
        for (_, teller, events) in upcalls {
            prop_assert!(!events.is_empty());
            for event in events {
                match event {
                    Upcall::AddProcessor => {}
                    Upcall::Blocked(thread) => {
                        prop_assert!(blocked.insert(*thread), "{:?}", upcalls)
                    }
                    Upcall::Unblocked(thread) => {
                        prop_assert!(blocked.remove(thread), "{:?}", upcalls)
                    }
                    Upcall::Preempted(thread) => {
                        prop_assert!(
                            !blocked.contains(thread) && thread != teller,
                            "{:?}",
                            upcalls
                        );
                    }
                }
            }
        }
        prop_assert!(blocked.is_empty());
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn all_work_is_done_every_stop_is_told_once_and_runs_repeat(program in program()) {
            let (upcalls, done, statistics) = run(&program)?;
            let jobs: usize = program.spaces.iter().map(|(_, _, jobs)| jobs.len()).sum();
            prop_assert_eq!(done as usize, jobs);
            upcalls.iter().try_for_each(check)?;
            for thread in &statistics.threads {
                let spent: Time = Activity::ALL.into_iter().map(|activity| thread.times.of(activity)).sum();
                prop_assert_eq!(spent, thread.life.1 - thread.life.0, "{:?}", thread);
            }
            let used = &statistics.processors;
            prop_assert!(used.iter().all(|&used| used <= statistics.elapsed), "{:?}", used);
            prop_assert!((upcalls, done, statistics) == run(&program)?, "another run");
        }
    }
}
