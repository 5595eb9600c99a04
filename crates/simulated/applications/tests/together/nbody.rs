//! N-body on the simulated machines, over a pool of threads: the places of the real machine, in the
//! same virtual time every time, and in less of it with more processors.

use stanchion_applications_simulated::nbody::{Fork, Options, Sequential, Simulation, plummer};
use stanchion_simulator::{Simulation as Machine, Statistics, machines};
use stanchion_threadpool::strategy::{IdleQueue, LocalReadyQueue, SingleLock, WorkStealing};
use stanchion_threadpool::{Strategy, ThreadPool, ThreadPoolBuilder};

/// A pool as what forks and joins.
struct OnPool<'p, S: Strategy>(&'p ThreadPool<S>);

impl<S: Strategy> Fork for OnPool<'_, S> {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.0.join(one, other)
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }
}

/// Known from the real machine, and from another program.
fn moves<F: Fork>(fork: &F) {
    let mut cluster = Simulation::new(plummer(600, 1), Options::default(), fork).unwrap();
    (0..4).for_each(|_| cluster.step(fork));
    assert_eq!(cluster.checksum(), 0xca2e_59e1_c98c_34b1);
}

fn run(processors: usize, body: impl Fn() + Clone + 'static) -> Statistics {
    let machine = machines::symmetry_a(processors);
    let once = || -> Statistics {
        let simulation = Machine::new(machine.clone()).stack_size(256 << 10);
        let run = simulation.run(body.clone());
        run.unwrap_or_else(|failure| panic!("{}: {failure}", machine.name)).statistics
    };
    let first = once();
    assert_eq!(first, once(), "the same run twice");
    first
}

fn over_a_pool<S: Strategy>() {
    let time = |processors| {
        let statistics = run(processors, move || {
            let pool = ThreadPoolBuilder::new().num_threads(processors).build_with::<S>().unwrap();
            moves(&OnPool(&pool));
            pool.shutdown();
        });
        statistics.elapsed
    };
    let times = [1, 4].map(time);
    println!("{}: {times:?}", S::NAME);
    assert!(times[1] * 3 < times[0], "four processors are more than three: {times:?}");
}

#[test]
fn alone() {
    run(1, || moves(&Sequential));
}

#[test]
fn under_work_stealing() {
    over_a_pool::<WorkStealing>();
}

#[test]
fn under_one_lock() {
    over_a_pool::<SingleLock>();
}

#[test]
fn under_an_idle_queue() {
    over_a_pool::<IdleQueue>();
}

#[test]
fn under_local_ready_queues() {
    over_a_pool::<LocalReadyQueue>();
}
