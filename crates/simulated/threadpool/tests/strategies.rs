//! The strategies on simulated machines: the paper's null threads on its own computer, and every
//! task run once where threads outnumber processors.

use stanchion_competitive::RawPolicyMutex;
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_machine::wait::{Patient, Spin, WaitPolicy, retry_until};
use stanchion_simulator::{Arena, Machine, Simulation, Time, machines};
use stanchion_spin::{TestAndSet, contention::Ethernet};
use stanchion_threadpool_simulated::strategy::{
    Fifo, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, Random, SingleLock, TwoChoices,
};
use stanchion_threadpool_simulated::{Plan, Strategy, Task, WorkerSlot};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// The paper's lock: Ethernet's backoff, and threads that have a processor each.
type Paper = TestAndSet<Ethernet, Spin>;

/// The next task, however long it takes.
fn next<S: Strategy, W: WaitPolicy>(
    strategy: &S,
    slot: &WorkerSlot,
    mut finished: Option<Task>,
) -> Option<Task> {
    loop {
        let task = strategy.next(slot, finished.take(), &mut None);
        if task.is_some() {
            return task;
        }
        strategy.idle(slot);
        retry_until(|| strategy.is_ready(slot).then_some(()), &mut W::start());
    }
}

/// Each of so many workers begins with one task; each task creates one and finishes. Every worker
/// runs `each`.
fn scene<S: Strategy, W: WaitPolicy>(slots: usize, each: usize) {
    let strategy = Arc::new(S::new(&Plan::new(slots)));
    strategy.label();
    let threads: Vec<_> = (0..slots)
        .map(|index| {
            let strategy = strategy.clone();
            thread::spawn(move || {
                // SAFETY: the only one of this number for this strategy.
                let slot = unsafe { WorkerSlot::new(index) };
                let _ = strategy.create(Some(&slot), |_| {});
                let mut task = None;
                for _ in 0..each {
                    task = next::<S, W>(&strategy, &slot, task);
                    let _ = strategy.create(Some(&slot), |_| {});
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a place"));
    assert_eq!(strategy.len(), slots, "as many as there were at first");
}

fn simulated(machine: &Machine, body: impl FnOnce() + 'static) -> Time {
    let run = Simulation::new(machine.clone()).seed(1).run(body);
    run.unwrap_or_else(|failure| panic!("{}: {failure}", machine.name)).statistics.elapsed
}

/// Microseconds from task to task on the Symmetry, without what it takes to start the workers.
fn null_threads<S: Strategy>(slots: usize) -> f64 {
    let machine = machines::symmetry_a(20);
    let time = |each| simulated(&machine, move || scene::<S, Spin>(slots, each)).as_nanos();
    let each = 720 / slots;
    (time(2 * each) - time(each)) as f64 / 1_000.0 / (slots * each) as f64
}

/// Checks the claims of section 3.6 about figures 3.1 and 3.2. The simulated machine charges for
/// shared data, not for the instructions in between, so the central queues do not part as they do
/// in the paper where few processors share them.
#[test]
fn null_threads_on_the_papers_computer() {
    println!(" slots  single multiple    local     idle   random (microseconds a task)");
    let row = |slots| {
        let row = [
            null_threads::<SingleLock<Paper>>(slots),
            null_threads::<MultipleLocks<Paper>>(slots),
            null_threads::<LocalFreeList<Paper>>(slots),
            null_threads::<IdleQueue<Paper>>(slots),
            null_threads::<LocalReadyQueue<Paper, Fifo, Random>>(slots),
        ];
        println!("{slots:6} {}", row.map(|micros| format!("{micros:7.2}")).join("  "));
        row
    };
    let [single, multiple, local, idle, random] = row(1);
    assert!(
        multiple > 1.5 * single,
        "locking each structure separately results in a much higher latency"
    );
    assert!(local < multiple && idle < multiple, "not locking what is local is crucial");
    assert!(local < idle, "even the check for idle processors increases the cost");
    assert!(random < multiple);

    let [central @ .., random] = row(18);
    for central in central {
        assert!(central > 5.0 * random, "only local ready queues support high rates of creation");
        assert!(central > 0.8 * single, "a central queue's rate does not grow with the processors");
    }
}

/// More workers than processors, slices that end in the middle of everything, and a lock that
/// sleeps: no worker waits for ever, and two runs are the same.
#[test]
fn workers_outnumber_processors() {
    fn run<S: Strategy>() {
        for seed in 0..4 {
            let mut machine = machines::modern(2);
            machine.scheduling.quantum = Time::nanos(4_000 + 1_237 * seed);
            let time = || simulated(&machine, || scene::<S, Patient>(5, 40));
            assert_eq!(time(), time());
        }
    }
    macro_rules! under_each {
        ([] $({ $name:ident: $strategy:ty, $($rest:tt)* })+) => { $(run::<$strategy>();)+ };
    }
    stanchion_threadpool_simulated::__strategies!(under_each);
    run::<LocalReadyQueue<RawPolicyMutex, Fifo, TwoChoices>>();
}
