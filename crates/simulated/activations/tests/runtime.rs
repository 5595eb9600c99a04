//! The whole runtime on the simulated machines, under schedules that a seed chooses: the test for
//! what is too large for loom.
//!
//! A thread that is never woken is a deadlock in virtual time, and is reported as such. Slices end
//! in the middle of everything, and a new kernel thread runs late. These tests cannot find an
//! error that takes a memory ordering, because a simulated run has one order of all accesses.
//! Loom's models are for those.
//!
//! This is what shuttle does, which has one order of all accesses as well, and two schedulers for
//! what is too large to explore. One lets any thread go on at each access. The other is PCT, by
//! which threads have priorities, and at a few accesses, chosen at random, one falls behind all
//! others. Here, processors with different times and slices that end anywhere take the place of
//! the first. Delays take the place of the second: at one to three accesses, chosen at random, a
//! thread stops for 1 µs to 8 ms, and all others go on (`crates/simulator/tests/together/delays.rs`
//! has bugs that only they find). Shuttle itself is not used, because the runtime would have to be
//! written against its types, and because there no kernel blocks a thread, or reports it.
//!
//! Each scene, and the failure that it looks for:
//!
//! - a stack of the runtime on the stack of a simulated thread: either continues on the other's;
//! - trees of threads that join their children: a joiner is not woken;
//! - threads that wake each other in a ring, and yield: a wake-up is lost between the token, the
//!   stack laid aside and the queue;
//! - threads from several kernel threads outside, with pauses in which all fall asleep: a worker
//!   sleeps beside a ready thread;
//! - parks that end by time, by an unpark, or by both: a time is forgotten; a wake-up is lost;
//! - a thread that waits for a time, and one outside that asks whether all wait for others: between
//!   the time and the wake-up no thread seems to have work;
//! - threads that block in the kernel: a slot is lost; two have one; a worker is forgotten;
//! - detached threads with results that count their drops: a thread is forgotten; a result is
//!   dropped twice;
//! - a runtime dropped by its own thread: workers stay.

use std::time::Duration;

use stanchion_activations_simulated::{
    Runtime, RuntimeBuilder, Thread, blocking, current, park, park_timeout, spawn, yield_now,
};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_simulator::{Arena, Machine, Simulation, Time, machines};
use stanchion_threadpool::strategy::{LocalFreeList, LocalReadyQueue, SingleLock, WorkStealing};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// Seeds of each scene.
const SEEDS: u64 = 96;

fn machine(seed: u64) -> Machine {
    let mut machine = machines::modern([1, 2, 6, 3][seed as usize % 4]);
    machine.scheduling.quantum = Time::nanos(3_000 + 1_237 * (seed % 17));
    machine.scheduling.spawn = Time::nanos(400 * (seed % 9));
    machine
}

/// Twice with each seed: the second time, one to three threads are stopped for a while, each at
/// any access of the run.
fn on_machines(name: &str, scene: fn(Runtime)) {
    for seed in 0..SEEDS {
        let run = |delays: usize, among: u64| {
            let body = move || scene(builder(seed).build().expect("simulated threads are free"));
            let simulation = Simulation::new(machine(seed)).seed(seed).delays(delays, among);
            let run = simulation.run(body);
            run.unwrap_or_else(|failure| panic!("{name}, seed {seed}, {delays} delays: {failure}"))
        };
        let plain = run(0, 0);
        run(1 + seed as usize % 3, plain.statistics.accesses.all);
    }
}

/// More workers than processors, as often as not.
fn builder(seed: u64) -> RuntimeBuilder {
    let builder = Runtime::builder()
        .processors(1 + (seed / 4) as usize % 4)
        .spare_kernel_threads((seed % 5) as usize)
        .stack_size(256 * 1024)
        .idle_spin(Duration::from_nanos(700 * (seed % 5)));
    match seed % 6 {
        0 => builder.strategy::<SingleLock>(),
        1 => builder.strategy::<LocalReadyQueue>(),
        2 => builder.strategy::<LocalFreeList>(),
        _ => builder.strategy::<WorkStealing>(),
    }
}

/// Up to `most`, by the seed.
fn any(most: u64) -> u64 {
    stanchion_machine::hint::entropy() % most
}

/// Some of the run's time, up to so many nanoseconds.
fn compute(nanos: u64) {
    stanchion_machine::work(any(nanos));
}

fn leaves(depth: u32) -> u32 {
    compute(900);
    if depth == 0 {
        return 1;
    }
    let children: Vec<_> = (0..2).map(|_| spawn(move || leaves(depth - 1))).collect();
    children.into_iter().map(|child| child.join().expect("no panic")).sum()
}

#[test]
fn a_stack_on_a_stack() {
    on_machines("a stack on a stack", |runtime| {
        let inside = runtime.spawn(|| {
            let number = current().id();
            // Leaves the outer stack from the inner one, and comes back to it.
            compute(50_000);
            thread::yield_now();
            compute(50_000);
            yield_now();
            number == current().id()
        });
        assert!(inside.join().expect("no panic"));
    });
}

#[test]
fn trees() {
    on_machines("trees", |runtime| {
        assert_eq!(runtime.run(|| leaves(4)), 16);
        compute(60_000);
        assert_eq!(runtime.run(|| leaves(3)), 8);
    });
}

/// Takes turns with the others, each of which wakes the next.
fn take_turns(members: &[Thread], turn: &AtomicU32, me: usize) {
    const ROUNDS: u32 = 6;
    let count = members.len() as u32;
    for round in 0..ROUNDS {
        let mine = round * count + me as u32;
        while turn.load(Relaxed) != mine {
            if any(4) == 0 {
                yield_now();
            } else {
                park();
            }
        }
        compute(4_000);
        turn.store(mine + 1, Relaxed);
        members[(me + 1) % members.len()].unpark();
    }
}

#[test]
fn rings() {
    on_machines("rings", |runtime| {
        let turn = Arc::new(AtomicU32::fresh(0));
        runtime.run(move || {
            let (sends, members): (Vec<_>, Vec<_>) = (0..3)
                .map(|me| {
                    let turn = turn.clone();
                    let (send, receive) = std::sync::mpsc::channel::<Vec<Thread>>();
                    let member = spawn(move || {
                        let members = loop {
                            match receive.try_recv() {
                                Ok(members) => break members,
                                Err(_) => yield_now(),
                            }
                        };
                        take_turns(&members, &turn, me);
                    });
                    (send, member)
                })
                .unzip();
            let threads: Vec<_> = members.iter().map(|member| member.thread().clone()).collect();
            for send in sends {
                compute(3_000);
                send.send(threads.clone()).expect("it waits for it");
            }
            members.into_iter().for_each(|member| member.join().expect("no panic"));
        });
    });
}

#[test]
fn from_outside() {
    on_machines("from outside", |runtime| {
        let runtime = Arc::new(runtime);
        let ran = Arc::new(AtomicU32::fresh(0));
        let outsiders: Vec<_> = (0..3)
            .map(|_| {
                let (runtime, ran) = (runtime.clone(), ran.clone());
                thread::spawn(move || {
                    for round in 0..6 {
                        let ran = ran.clone();
                        let inside = runtime.spawn(move || {
                            compute(2_500);
                            park();
                            ran.fetch_add(1, Relaxed);
                        });
                        compute(5_000);
                        inside.thread().unpark();
                        if round % 2 == 0 {
                            inside.join().expect("no panic");
                        }
                        compute(20_000);
                    }
                })
            })
            .collect();
        outsiders.into_iter().for_each(|outsider| outsider.join().expect("an outsider"));
        drop(Arc::into_inner(runtime).expect("they have gone"));
        assert_eq!(ran.load(Relaxed), 18);
    });
}

#[test]
fn times() {
    on_machines("times", |runtime| {
        let sleepers: Vec<_> = (0..8)
            .map(|_| {
                runtime.spawn(|| {
                    compute(3_000);
                    for _ in 0..3 {
                        park_timeout(Duration::from_nanos(any(40_000)));
                        compute(9_000);
                    }
                })
            })
            .collect();
        for sleeper in &sleepers {
            compute(15_000);
            sleeper.thread().unpark();
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("no panic"));
    });
}

#[test]
fn in_the_kernel() {
    on_machines("in the kernel", |runtime| {
        let ran = Arc::new(AtomicU32::fresh(0));
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let ran = ran.clone();
                runtime.spawn(move || {
                    let children: Vec<_> = (0..2).map(|_| spawn(|| compute(9_000))).collect();
                    let pause = Duration::from_nanos(any(120_000));
                    if number % 2 == 0 {
                        blocking(|| thread::sleep(pause));
                    } else {
                        thread::sleep(pause);
                    }
                    children.into_iter().for_each(|child| child.join().expect("no panic"));
                    yield_now();
                    ran.fetch_add(1, Relaxed);
                })
            })
            .collect();
        compute(90_000);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(ran.load(Relaxed), 6);
    });
}

/// Says when it is dropped.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        yield_now();
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn detached_threads() {
    on_machines("no thread joins", |runtime| {
        let drops = Arc::new(AtomicU32::fresh(0));
        for _ in 0..6 {
            let drops = drops.clone();
            let handle = runtime.spawn(move || {
                compute(3_000);
                let drops = drops.clone();
                drop(spawn(move || Counted(drops.clone())));
            });
            compute(4_000);
            drop(handle);
        }
        drop(runtime);
        assert_eq!(drops.load(Relaxed), 6);
    });
}

#[test]
fn dropped_inside() {
    on_machines("dropped inside", |runtime| {
        let (sends, receives) = std::sync::mpsc::channel::<Runtime>();
        let inside = runtime.spawn(move || {
            let runtime = loop {
                match receives.try_recv() {
                    Ok(runtime) => break runtime,
                    Err(_) => yield_now(),
                }
            };
            runtime.spawn(|| compute(5_000));
            drop(runtime);
            compute(9_000);
            spawn(|| compute(5_000));
        });
        compute(9_000);
        sends.send(runtime).expect("it waits for it");
        inside.join().expect("no panic");
    });
}

#[test]
fn sleeping_thread_is_not_stalled() {
    on_machines("not stalled", |runtime| {
        let awake = Arc::new(AtomicU32::fresh(0));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let awake = awake.clone();
                runtime.spawn(move || {
                    for _ in 0..8 {
                        park_timeout(Duration::from_nanos(1_000 + any(4_000)));
                    }
                    awake.fetch_add(1, Relaxed);
                })
            })
            .collect();
        while awake.load(Relaxed) < 2 {
            let stalled = runtime.stalled();
            // They may have ended since.
            assert!(stalled.is_none() || awake.load(Relaxed) == 2, "{stalled:?}");
            compute(900);
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("no panic"));
    });
}
