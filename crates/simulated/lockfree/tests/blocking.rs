//! `Blocking` on the simulated machines: no thread sleeps beside a value, nothing is lost when the
//! queue is closed, and the run is the same every time.

use stanchion_lockfree_simulated::{Blocking, ConcurrentQueue};
use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_simulator::{Arena, Machine, Simulation, Statistics, Time, machines};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

const PUSHERS: u32 = 3;
const POPPERS: u32 = 3;
const EACH: u32 = 20;

/// Three push, three wait for values until the queue is closed.
fn scene<Q: ConcurrentQueue<Item = u32> + Default + Send + Sync + 'static>() {
    let queue = Arc::new(Blocking::<Q>::default());
    let sum = Arc::new(AtomicU32::new(0));
    let poppers: Vec<_> = (0..POPPERS)
        .map(|_| {
            let (queue, sum) = (queue.clone(), sum.clone());
            thread::spawn(move || {
                while let Ok(value) = queue.pop() {
                    sum.fetch_add(value, Relaxed);
                    stanchion_machine::work(stanchion_machine::hint::entropy() % 3_000);
                }
            })
        })
        .collect();
    let pushers: Vec<_> = (0..PUSHERS)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                for value in 1..=EACH {
                    queue.push(value).expect("it is not closed yet");
                    stanchion_machine::work(stanchion_machine::hint::entropy() % 20_000);
                }
            })
        })
        .collect();
    pushers.into_iter().for_each(|thread| thread.join().expect("a pusher"));
    assert!(queue.close());
    poppers.into_iter().for_each(|thread| thread.join().expect("a popper"));
    assert_eq!(sum.load(Relaxed), PUSHERS * EACH * (EACH + 1) / 2);
}

/// The scene on some machines, with slices that end in the middle of everything; twice on one of
/// them.
fn on_machines(scene: fn()) {
    let run = |machine: &Machine, seed: u64| -> Statistics {
        let run = Simulation::new(machine.clone()).seed(seed).run(scene);
        let name = &machine.name;
        run.unwrap_or_else(|failure| panic!("{name}, seed {seed}: {failure}")).statistics
    };
    run(&machines::challenge(), 0);
    for seed in 0..8 {
        let mut machine = machines::modern(1 + seed as usize % 4);
        machine.scheduling.quantum = Time::nanos(4_000 + 1_237 * seed);
        let first = run(&machine, seed);
        if seed % 4 == 0 {
            assert_eq!(first, run(&machine, seed), "the same run twice");
        }
    }
}

macro_rules! scenes {
    ([] $({ $name:ident: $queue:ty, $($rest:tt)* })+) => {
        $(on_machines(scene::<$queue>);)+
    };
}

#[test]
fn nothing_is_lost_and_no_thread_sleeps_for_ever() {
    stanchion_lockfree_simulated::__structures!(queue: scenes, u32);
}
