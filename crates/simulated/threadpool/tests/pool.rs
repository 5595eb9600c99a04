//! The whole pool on the simulated machines, under schedules that a seed chooses: the test of what
//! is too large for loom.
//!
//! A thread that no other thread wakes is a deadlock in virtual time, and is reported as such.
//! Slices end in the middle of everything, and a new thread runs late. These tests cannot find a
//! missing memory ordering, because a simulated run has one order of all accesses. For that there
//! are loom's models.
//!
//! Each line names a scene, and the error that it would show.
//!
//! - Forks that are taken back, and stolen: a wake-up of a worker that waits for a fork is lost; a
//!   fork runs twice.
//! - Scopes in scopes, tasks for which no thread waits: a task lies while all sleep; the scope ends
//!   too early.
//! - Tasks from several threads outside, with pauses in which the pool falls asleep: a lost
//!   wake-up.
//! - The pool grows and shrinks meanwhile: a task stays in the queue of a thread that has gone.
//! - Tasks block, and spares work for them: a wake-up goes to a spare; a spare that is not needed
//!   keeps a task.
//! - Tasks block without saying so, and one behind them would wake them: the monitor sleeps on; a
//!   lease ends twice, or never.
//! - A burst of as many tasks as workers, which wait for each other: a worker sleeps on beside a
//!   task.
//! - Broadcasts to workers that fall asleep: a signal is missed in the last look.
//! - Tasks of two pools wait for each other: no worker runs an awaited task.
//! - Shut down while tasks create tasks: a thread goes too early, or never.
//!
//! Each scene runs under each strategy and each [`Wait`].

use stanchion_machine::atomic::{
    AtomicU32, Fresh,
    Ordering::{Acquire, Relaxed, Release},
};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion_simulator::{Arena, Machine, Simulation, Time, machines};
use stanchion_threadpool_simulated::strategy::{
    IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, SingleLock, Strategy, WorkStealing,
};
use stanchion_threadpool_simulated::{
    ThreadPool, ThreadPoolBuilder, Wait, Worker, blocking, join, scope, spawn,
};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

const WAITS: [Wait; 4] = [Wait::Any, Wait::Leapfrog, Wait::Isolated, Wait::Park];

/// Seeds of each scene, strategy and [`Wait`].
const SEEDS: u64 = 60;

fn machine(seed: u64) -> Machine {
    let mut machine = machines::modern(1 + seed as usize % 4);
    machine.scheduling.quantum = Time::nanos(3_000 + 1_237 * (seed % 17));
    machine.scheduling.spawn = Time::nanos(400 * (seed % 9));
    machine
}

fn on_machines(name: &str, scene: impl Fn(Wait) + Copy + Send + Sync + 'static) {
    for wait in WAITS {
        for seed in 0..SEEDS {
            let run = Simulation::new(machine(seed)).seed(seed).run(move || scene(wait));
            if let Err(failure) = run {
                panic!("{name}, {wait:?}, seed {seed}: {failure}");
            }
        }
    }
}

/// Some of the run's time, up to so many nanoseconds: the order of things is the seed's.
fn compute(nanos: u64) {
    stanchion_machine::work(stanchion_machine::hint::entropy() % nanos);
}

fn pool<S: Strategy>(threads: usize, wait: Wait) -> ThreadPool<S> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .max_threads(4)
        .spare_threads(12)
        .wait(wait)
        .idle_spin(std::time::Duration::from_nanos(stanchion_machine::hint::entropy() % 3_000))
        .build_with()
        .expect("simulated threads are free")
}

fn fib(worker: &Worker, n: u32) -> u32 {
    compute(900);
    if n < 2 {
        return n;
    }
    let (a, b) = worker.join(|worker| fib(worker, n - 1), |worker| fib(worker, n - 2));
    a + b
}

fn forks<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(3, wait);
    for _ in 0..3 {
        assert_eq!(pool.install_with(|worker| fib(worker, 7)), 13);
        compute(30_000);
    }
    pool.shutdown();
}

fn scopes<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(3, wait);
    let runs = Arc::new(AtomicU32::fresh(0));
    let count = || {
        compute(1_500);
        runs.fetch_add(1, Relaxed);
    };
    pool.scope(|s| {
        for _ in 0..4 {
            s.spawn(|s| {
                s.spawn(|_| count());
                scope(|s| (0..2).for_each(|_| s.spawn_fifo(|_| count())));
                let runs = runs.clone();
                spawn(move || {
                    compute(2_000);
                    runs.fetch_add(1, Relaxed);
                });
            });
        }
    });
    assert!(runs.load(Relaxed) >= 12);
    pool.shutdown();
    assert_eq!(runs.load(Relaxed), 16);
}

fn from_outside<S: Strategy>(wait: Wait) {
    let pool = Arc::new(pool::<S>(3, wait));
    let runs = Arc::new(AtomicU32::fresh(0));
    let outsiders: Vec<_> = (0..3)
        .map(|_| {
            let (pool, runs) = (pool.clone(), runs.clone());
            thread::spawn(move || {
                for round in 0..8 {
                    let counted = runs.clone();
                    pool.spawn(move || {
                        compute(2_500);
                        counted.fetch_add(1, Relaxed);
                    });
                    if round % 3 == 0 {
                        pool.install(|| compute(500));
                    }
                    compute(20_000);
                }
            })
        })
        .collect();
    outsiders.into_iter().for_each(|outsider| outsider.join().expect("an outsider"));
    Arc::into_inner(pool).expect("they have gone").shutdown();
    assert_eq!(runs.load(Relaxed), 24);
}

fn resizes<S: Strategy>(wait: Wait) {
    let pool = Arc::new(pool::<S>(1, wait));
    let resizer = {
        let pool = pool.clone();
        thread::spawn(move || {
            for threads in [4, 1, 3, 2, 4, 1] {
                pool.set_num_threads(threads).expect("simulated threads are free");
                compute(8_000);
            }
        })
    };
    let runs = AtomicU32::fresh(0);
    for _ in 0..4 {
        pool.scope(|s| {
            for _ in 0..6 {
                s.spawn(|s| {
                    compute(2_000);
                    s.spawn(|_| {
                        runs.fetch_add(1, Relaxed);
                    });
                });
            }
        });
    }
    resizer.join().expect("the resizer");
    assert_eq!(runs.load(Relaxed), 24);
    Arc::into_inner(pool).expect("it has gone").shutdown();
}

fn blocks<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(2, wait);
    for _ in 0..3 {
        let met = AtomicU32::fresh(0);
        let met = &met;
        pool.scope(|s| {
            for _ in 0..4 {
                // All four must run at the same time.
                s.spawn(move |_| {
                    blocking(|| {
                        met.fetch_add(1, Relaxed);
                        let mut policy = <Patient as WaitPolicy>::start();
                        wait_until(met, Relaxed, |met| met == 4, &mut policy);
                    });
                });
            }
        });
        compute(60_000);
        assert_eq!(pool.install(|| 1), 1);
    }
    pool.shutdown();
}

/// Tasks that sleep until one behind them wakes them, and do not tell the pool.
fn blocks_without_a_word<S: Strategy>(wait: Wait) {
    let pool: ThreadPool<S> = ThreadPoolBuilder::new()
        .num_threads(2)
        .max_threads(4)
        .spare_threads(12)
        .wait(wait)
        .compensate_blocking(true)
        .build_with()
        .expect("simulated threads are free");
    for round in 0..3 {
        let gate = Arc::new(AtomicU32::fresh(0));
        for _ in 0..3 {
            let gate = gate.clone();
            pool.spawn(move || {
                compute(3_000);
                while gate.load(Acquire) == 0 {
                    park::wait(&gate, 0, Deadline::NEVER);
                }
                compute(3_000);
            });
        }
        // In some rounds when all have blocked, in some before.
        compute(1 + 60_000 * round);
        pool.spawn(move || {
            compute(2_000);
            gate.store(1, Release);
            park::wake_all(&gate);
        });
        compute(100_000);
        assert_eq!(pool.install(|| 1), 1);
    }
    pool.shutdown();
}

/// As many tasks as there are workers, each of which waits for all others, without telling the
/// pool.
fn bursts<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(4, wait);
    for round in 0..6 {
        let met = Arc::new(AtomicU32::fresh(0));
        for _ in 0..4 {
            let met = met.clone();
            pool.spawn(move || {
                met.fetch_add(1, Relaxed);
                let mut policy = <Patient as WaitPolicy>::start();
                wait_until(&*met, Relaxed, |met| met >= 4, &mut policy);
                met.fetch_add(1, Relaxed);
            });
            compute(1 + 900 * round);
        }
        let mut policy = <Patient as WaitPolicy>::start();
        wait_until(&*met, Relaxed, |met| met == 8, &mut policy);
        compute(40_000);
    }
    pool.shutdown();
}

fn broadcasts<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(3, wait);
    for _ in 0..5 {
        assert_eq!(pool.broadcast(Worker::index), [0, 1, 2]);
        compute(20_000);
    }
    pool.install(|| assert_eq!(pool.broadcast(Worker::index), [0, 1, 2]));
    pool.shutdown();
}

fn to_and_fro<S: Strategy>(here: &ThreadPool<S>, there: &ThreadPool<S>, levels: u32) -> u32 {
    compute(1_000);
    if levels == 0 { 0 } else { 1 + there.install(|| to_and_fro(there, here, levels - 1)) }
}

fn two_pools<S: Strategy>(wait: Wait) {
    let (one, two) = (pool::<S>(1, wait), pool::<S>(1, wait));
    let (a, b) = one.install(|| join(|| to_and_fro(&one, &two, 4), || to_and_fro(&one, &two, 3)));
    assert_eq!((a, b), (4, 3));
    one.shutdown();
    two.shutdown();
}

/// A task that creates two, and so on.
fn breed(levels: u32, runs: Arc<AtomicU32>) {
    compute(1_000);
    runs.fetch_add(1, Relaxed);
    if levels > 0 {
        for _ in 0..2 {
            let runs = runs.clone();
            spawn(move || breed(levels - 1, runs));
        }
    }
}

fn shuts_down<S: Strategy>(wait: Wait) {
    let pool = pool::<S>(3, wait);
    let runs = Arc::new(AtomicU32::fresh(0));
    let bred = runs.clone();
    pool.spawn(move || breed(4, bred));
    // Nothing is ready while this runs; then there is.
    let late = runs.clone();
    pool.spawn(move || {
        compute(40_000);
        scope(|s| s.spawn(|_| compute(100)));
        breed(1, late);
    });
    compute(20_000);
    pool.shutdown();
    assert_eq!(runs.load(Relaxed), 31 + 3);
}

macro_rules! under_each {
    ($($strategy:ident: $name:ty),*) => { $(
        mod $strategy {
            use super::*;
            #[test]
            fn forks() { on_machines("forks", super::forks::<$name>); }
            #[test]
            fn scopes() { on_machines("scopes", super::scopes::<$name>); }
            #[test]
            fn from_outside() { on_machines("from outside", super::from_outside::<$name>); }
            #[test]
            fn resizes() { on_machines("resizes", super::resizes::<$name>); }
            #[test]
            fn blocks() { on_machines("blocks", super::blocks::<$name>); }
            #[test]
            fn blocks_without_a_word() {
                on_machines("blocks without a word", super::blocks_without_a_word::<$name>);
            }
            #[test]
            fn bursts() { on_machines("bursts", super::bursts::<$name>); }
            #[test]
            fn broadcasts() { on_machines("broadcasts", super::broadcasts::<$name>); }
            #[test]
            fn two_pools() { on_machines("two pools", super::two_pools::<$name>); }
            #[test]
            fn shuts_down() { on_machines("shuts down", super::shuts_down::<$name>); }
        }
    )* };
}

under_each!(
    single_lock: SingleLock,
    multiple_locks: MultipleLocks,
    local_free_list: LocalFreeList,
    idle_queue: IdleQueue,
    local_ready_queue: LocalReadyQueue,
    work_stealing: WorkStealing
);
