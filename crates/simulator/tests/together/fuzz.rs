//! Random programs on every machine, compared with plain memory.
//!
//! Each operation on a word is written down, on the host, in the order in which the operations take
//! effect, with the value that it saw. Replayed in that order on plain numbers every read must have
//! seen the last write: that is sequential consistency, with the order of effect as the witness.
//! The order must also be that of virtual time, and of each thread's program, and a woken thread
//! must have had a waker.

use crate::common;
use common::Word;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use stanchion_simulator::inside::{self, Parked};
use stanchion_simulator::os::{gang, keep};
use stanchion_simulator::{Activity, Failure, Run, Simulation, Statistics, Time, machines};
use std::cell::RefCell;
use std::rc::Rc;

const WORDS: usize = 4;

/// An operation of a thread; a word is given by its number.
#[derive(Clone, Copy, Debug)]
enum Op {
    Load(usize),
    Store(usize, u64),
    Add(usize, u64),
    Swap(usize, u64),
    CompareExchange(usize, u64, u64),
    /// Sleep while the word is so, but not for longer than so many nanoseconds.
    Park(usize, u64, u64),
    Wake(usize, usize),
    /// Spin until the word is so, but not for longer.
    Watch(usize, u64, u64),
    Work(u64),
    Pause(u64),
    Sleep(u64),
    Yield,
    Fence,
    Clock,
    Pin(Option<usize>),
    /// Work without being preempted.
    Keep(u64),
}

/// The effect of an operation, with the value that it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Read {
        word: usize,
        seen: u64,
    },
    Write {
        word: usize,
        value: u64,
    },
    Exchange {
        word: usize,
        seen: u64,
        value: u64,
    },
    /// A thread was to be woken.
    Woke {
        word: usize,
    },
    /// The wait of a sleeper ended.
    Slept {
        word: usize,
        how: Parked,
    },
    Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The thread.
    thread: usize,
    /// The number of the operation in the thread's program.
    op: usize,
    /// The effect.
    effect: Effect,
    /// Between which moments it took effect, by the code's clock.
    between: (u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    let word = || 0..WORDS;
    // Few values, so that operations meet.
    let value = || 0..4_u64;
    let time = || prop_oneof![0..200_u64, 0..20_000_u64];
    prop_oneof![
        3 => word().prop_map(Op::Load),
        3 => (word(), value()).prop_map(|(word, value)| Op::Store(word, value)),
        2 => (word(), value()).prop_map(|(word, value)| Op::Add(word, value)),
        2 => (word(), value()).prop_map(|(word, value)| Op::Swap(word, value)),
        2 => (word(), value(), value()).prop_map(|(word, old, new)| Op::CompareExchange(word, old, new)),
        2 => (word(), value(), time()).prop_map(|(word, value, time)| Op::Park(word, value, time)),
        2 => (word(), 0..3_usize).prop_map(|(word, count)| Op::Wake(word, count)),
        2 => (word(), value(), time()).prop_map(|(word, value, time)| Op::Watch(word, value, time)),
        2 => time().prop_map(Op::Work),
        1 => time().prop_map(Op::Pause),
        1 => time().prop_map(Op::Sleep),
        1 => Just(Op::Yield),
        1 => Just(Op::Fence),
        1 => Just(Op::Clock),
        1 => time().prop_map(Op::Keep),
        1 => proptest::option::of(0..8_usize).prop_map(Op::Pin),
    ]
}

#[derive(Clone, Debug)]
struct Program {
    /// The number of the machine.
    machine: usize,
    /// The number of processors.
    processors: usize,
    /// The number of applications.
    applications: usize,
    /// Words on one line, or on a line each.
    packed: bool,
    /// Threads are in slots that take turns.
    gangs: bool,
    /// The quantum, in nanoseconds.
    quantum: u64,
    /// The seed.
    seed: u64,
    /// The operations of each thread.
    threads: Vec<Vec<Op>>,
}

fn program() -> impl Strategy<Value = Program> {
    let threads = proptest::collection::vec(proptest::collection::vec(op(), 0..30), 1..7);
    let shape = (0..machines::NAMES.len(), 1..=8_usize, 1..=2_usize, any::<bool>(), any::<bool>());
    (shape, 1_000..100_000_u64, any::<u64>(), threads).prop_map(
        |(shape, quantum, seed, threads)| {
            let (machine, processors, applications, packed, gangs) = shape;
            let applications = if gangs { 1 } else { applications };
            Program { machine, processors, applications, packed, gangs, quantum, seed, threads }
        },
    )
}

struct Shared {
    /// Words on a line each.
    words: Vec<(Word, [u64; 31])>,
    /// Words on one line.
    tight: [Word; WORDS],
    /// Set if the words on one line are used.
    packed: bool,
    /// The operations, in the order of their effect.
    log: RefCell<Vec<Entry>>,
}

impl Shared {
    fn word(&self, number: usize) -> &Word {
        if self.packed { &self.tight[number] } else { &self.words[number].0 }
    }

    fn note(&self, thread: usize, op: usize, begin: u64, effect: Effect) {
        let between = (begin, inside::now());
        self.log.borrow_mut().push(Entry { thread, op, effect, between });
    }
}

fn perform(shared: &Shared, thread: usize, number: usize, op: Op, processors: usize) {
    let begin = inside::now();
    let note = |effect| shared.note(thread, number, begin, effect);
    match op {
        Op::Load(word) => note(Effect::Read { word, seen: shared.word(word).load() }),
        Op::Store(word, value) => {
            shared.word(word).store(value);
            note(Effect::Write { word, value });
        }
        Op::Add(word, by) => {
            let seen = shared.word(word).add(by);
            note(Effect::Exchange { word, seen, value: seen.wrapping_add(by) });
        }
        Op::Swap(word, value) => {
            let seen = shared.word(word).swap(value);
            note(Effect::Exchange { word, seen, value });
        }
        Op::CompareExchange(word, old, new) => {
            let (seen, value) = match shared.word(word).compare_exchange(old, new) {
                Ok(seen) => (seen, new),
                Err(seen) => (seen, seen),
            };
            note(Effect::Exchange { word, seen, value });
        }
        Op::Park(word, value, time) => {
            let until = begin + time;
            let changed = || {
                let seen = shared.word(word).raw();
                note(Effect::Read { word, seen });
                seen != value
            };
            let how = inside::park(shared.word(word).address(), changed, until);
            note(Effect::Slept { word, how });
            assert!(how != Parked::TimedOut || inside::now() >= until, "woken too early");
        }
        Op::Wake(word, count) => {
            note(Effect::Woke { word });
            assert!(inside::wake(shared.word(word).address(), count) <= count);
        }
        Op::Watch(word, value, time) => {
            let mut now = begin;
            loop {
                let seen = shared.word(word).load();
                shared.note(thread, number, now, Effect::Read { word, seen });
                now = inside::now();
                if seen == value || now >= begin + time {
                    break;
                }
                inside::watch(shared.word(word).address(), begin + time - now);
                now = inside::now();
            }
        }
        Op::Work(time) => inside::work(time),
        Op::Pause(time) => inside::pause(time),
        Op::Sleep(time) => {
            inside::sleep(time);
            assert!(inside::now() >= begin + time, "slept too little");
        }
        Op::Yield => inside::yield_now(),
        Op::Fence => inside::fence(),
        Op::Clock => note(Effect::Clock),
        Op::Keep(time) => {
            keep::begin();
            inside::work(time);
            keep::end();
        }
        Op::Pin(processor) => {
            let processor = processor.map(|processor| processor % processors);
            inside::pin(processor);
            assert!(processor.is_none_or(|processor| processor == inside::processor()));
        }
    }
}

fn run(program: &Program) -> Result<Run<Vec<Entry>>, Failure> {
    let mut machine = machines::by_name(machines::NAMES[program.machine]).unwrap();
    // Two sockets are divided evenly.
    machine.processors = program.processors.next_multiple_of(2);
    machine.scheduling.applications = program.applications;
    machine.scheduling.quantum = Time::nanos(program.quantum);
    let scheduling = &machine.scheduling;
    let switch = scheduling.interrupt + scheduling.skew + scheduling.switch;
    let processors = machine.processors;
    let (packed, gangs, quantum) = (program.packed, program.gangs, program.quantum);
    let threads = program.threads.clone();
    Simulation::new(machine).seed(program.seed).timeline().run(move || {
        let shared = Rc::new(Shared {
            words: (0..WORDS).map(|_| (Word::new(0), [0; 31])).collect(),
            tight: core::array::from_fn(|_| Word::new(0)),
            packed,
            log: RefCell::default(),
        });
        if gangs {
            gang::rotate(Some(switch + Time::nanos(quantum)));
        }
        let made: Vec<_> = threads
            .into_iter()
            .enumerate()
            .map(|(thread, ops)| {
                let shared = Rc::clone(&shared);
                let body = move || {
                    for (number, op) in ops.into_iter().enumerate() {
                        perform(&shared, thread, number, op, processors);
                    }
                };
                if gangs {
                    let entry = (thread / processors, thread % processors);
                    gang::spawn(None, entry, Box::new(body))
                } else {
                    inside::spawn(None, None, Box::new(body))
                }
            })
            .collect();
        made.into_iter().for_each(inside::join);
        shared.log.take()
    })
}

/// The log against plain numbers, against the clock, and against the program.
fn check(log: &[Entry], threads: usize) -> Result<(), TestCaseError> {
    let mut memory = [0; WORDS];
    let mut at = vec![0; threads];
    let mut wakers = [false; WORDS];
    let mut latest = 0;
    for entry in log {
        match entry.effect {
            Effect::Read { word, seen } => prop_assert_eq!(seen, memory[word], "{:?}", entry),
            Effect::Write { word, value } => memory[word] = value,
            Effect::Exchange { word, seen, value } => {
                prop_assert_eq!(seen, memory[word], "{:?}", entry);
                memory[word] = value;
            }
            Effect::Woke { word } => wakers[word] = true,
            Effect::Slept { word, how } => {
                prop_assert!(how != Parked::Woken || wakers[word], "by no thread: {:?}", entry);
            }
            Effect::Clock => {}
        }
        if let Effect::Read { .. } | Effect::Write { .. } | Effect::Exchange { .. } = entry.effect {
            // There are moments for all effects in their intervals that follow one another: virtual
            // time is the order of effect.
            latest = latest.max(entry.between.0);
            prop_assert!(latest <= entry.between.1, "{:?} is later than {}", entry, latest);
        }
        prop_assert!(entry.op >= at[entry.thread], "out of its thread's order: {:?}", entry);
        at[entry.thread] = entry.op;
    }
    Ok(())
}

/// Checks the laws of the counts.
fn balance(statistics: &Statistics) -> Result<(), TestCaseError> {
    for thread in &statistics.threads {
        let spent: Time = Activity::ALL.into_iter().map(|activity| thread.times.of(activity)).sum();
        let life = thread.life.1 - thread.life.0;
        prop_assert_eq!(spent, life, "a thread's times are its life: {:?}", thread);
    }
    let all = |part: fn(&stanchion_simulator::Accesses) -> u64| -> u64 {
        statistics.threads.iter().map(|thread| part(&thread.accesses)).sum()
    };
    prop_assert_eq!(all(|accesses| accesses.all), statistics.accesses.all);
    prop_assert_eq!(all(|accesses| accesses.misses), statistics.accesses.misses);
    prop_assert_eq!(all(|accesses| accesses.invalidations), statistics.accesses.invalidations);
    let (processors, elapsed) = (&statistics.processors, statistics.elapsed);
    prop_assert!(processors.iter().all(|&used| used <= elapsed), "{processors:?} {elapsed}");
    Ok(())
}

/// No processor has two threads at once, and no thread is on two processors.
fn overlaps(run: &Run<Vec<Entry>>) -> Result<(), TestCaseError> {
    let spans = run.timeline.as_ref().expect("it was asked for").spans();
    let mut by_processor: Vec<_> = spans.iter().filter(|span| span.processor.is_some()).collect();
    by_processor.sort_by_key(|span| (span.processor, span.start));
    let mut by_thread: Vec<_> = spans.iter().collect();
    by_thread.sort_by_key(|span| (span.thread, span.start));
    for pair in by_processor.windows(2) {
        let apart = pair[0].processor != pair[1].processor || pair[0].end <= pair[1].start;
        prop_assert!(apart, "on one processor: {:?}", pair);
    }
    for pair in by_thread.windows(2) {
        let apart = pair[0].thread != pair[1].thread || pair[0].end <= pair[1].start;
        prop_assert!(apart, "of one thread: {:?}", pair);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_machine_is_sequentially_consistent_and_repeats_itself(program in program()) {
        let first = run(&program).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        check(&first.result, program.threads.len())?;
        balance(&first.statistics)?;
        overlaps(&first)?;
        let second = run(&program).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        prop_assert_eq!(first.result, second.result);
        prop_assert_eq!(first.statistics, second.statistics);
        prop_assert_eq!(first.timeline, second.timeline);
    }
}
