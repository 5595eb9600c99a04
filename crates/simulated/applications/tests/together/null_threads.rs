//! Null threads on the simulated Symmetry: the virtual time is always the same, no thread is lost,
//! and the strategies show the effects that they are known for.

use stanchion_applications_simulated::null_threads::{
    Costs, Latency, Options, Path, Run, Sweep, latency, run,
};
use stanchion_machine::wait::Spin;
use stanchion_simulator::{Simulation, machines};
use stanchion_spin::TestAndSet;
use stanchion_spin::contention::Ethernet;
use stanchion_threadpool::Strategy;
use stanchion_threadpool::strategy::{
    Fifo, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, Random, SingleLock,
    WorkStealing,
};

type Lock = TestAndSet<Ethernet, Spin>;
type Ready = LocalReadyQueue<Lock, Fifo, Random>;

const COSTS: Costs = Costs {
    create: Path { nanos: 8_000, writes: 5 },
    start: Path { nanos: 6_000, writes: 4 },
    finish: Path { nanos: 6_000, writes: 3 },
    look_ns: 2_500,
};

fn simulation(processors: usize) -> Simulation {
    Simulation::new(machines::symmetry_a(processors))
}

/// Nanoseconds of the code's clock for a thread, all processors together.
fn pace<S: Strategy>(processors: usize, copies: bool) -> f64 {
    let options = Options { processors, each: 200, copies, costs: COSTS, ..Options::default() };
    let once = || -> Run {
        let body = move || run::<S, Spin>(&options).unwrap();
        simulation(processors)
            .run(body)
            .unwrap_or_else(|failure| panic!("{}: {failure}", S::NAME))
            .result
    };
    let found = once();
    assert_eq!(found, once(), "{}: the same run twice", S::NAME);
    assert_eq!(found.left, processors, "{} lost a thread or has one twice", S::NAME);
    found.elapsed.as_nanos() as f64 / found.threads as f64
}

#[test]
fn all_strategies_keep_their_threads() {
    for processors in [1, 4] {
        for pace in [
            pace::<SingleLock<Lock>>,
            pace::<MultipleLocks<Lock>>,
            pace::<LocalFreeList<Lock>>,
            pace::<IdleQueue<Lock>>,
            pace::<Ready>,
            pace::<WorkStealing>,
        ] {
            assert!(pace(processors, false) > 0.0);
        }
    }
}

#[test]
fn local_ready_queues_are_faster_than_a_central_one_on_many_processors() {
    let [central, local] = [pace::<LocalFreeList<Lock>>, pace::<Ready>].map(|pace| pace(8, false));
    assert!(local < 0.8 * central, "{local} against {central} ns a thread");
}

#[test]
fn copies_meet_on_the_bus_only() {
    let alone = pace::<LocalFreeList<Lock>>(1, true);
    let together = 4.0 * pace::<LocalFreeList<Lock>>(4, true);
    assert!((1.0..1.5).contains(&(together / alone)), "{together} against {alone} ns a thread");
}

#[test]
fn an_idle_queue_starts_threads_soonest_while_processors_idle() {
    const SWEEP: Sweep = Sweep {
        processors: 6,
        most: 10,
        rounds: 2,
        settle_ns: 2_000,
        threshold: None,
        costs: COSTS,
        seed: 1,
    };
    fn found<S: Strategy>() -> Vec<Latency> {
        let body = || latency::<S, Spin>(&SWEEP).unwrap();
        let once =
            || simulation(6).run(body).unwrap_or_else(|failure| panic!("{}: {failure}", S::NAME));
        let first = once();
        assert_eq!(first.statistics, once().statistics, "the same run twice");
        first.result
    }
    let (idle, central) = (found::<IdleQueue<Lock>>(), found::<LocalFreeList<Lock>>());
    assert_eq!(idle.len(), 9);
    for (idle, central) in idle.iter().zip(&central) {
        if idle.runnable < 6 {
            assert!(idle.cost < central.cost, "{idle:?} against {central:?}");
        }
    }
}
