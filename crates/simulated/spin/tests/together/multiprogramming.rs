//! Multiprogramming levels of Michael and Scott 1997 on the machine of that paper. A lock loses
//! time while other applications have the processors. It loses less if its holder asks not to be
//! preempted.
//!
//! An experiment is a body, and the level is the machine's `scheduling.applications`. At level 2
//! another application has each processor for a quantum of 10 ms after each quantum of the
//! experiment.

use std::time::Duration;

use lock_api::{Mutex, RawMutex};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::Spin;
use stanchion_machine::{preemption, thread, topology};
use stanchion_simulator::{Machine, Simulation, Statistics, machines};
use stanchion_spin_simulated::contention::Polling;
use stanchion_spin_simulated::{PreemptionSafe, Recovering, TestAndSet};

/// The first lock of the paper's figures. It makes no request.
type Ordinary = TestAndSet<Polling<100, 30_000>, Spin>;
/// The second one. It differs only in its request not to be preempted.
type Safe = PreemptionSafe<Polling<100, 30_000>, Spin>;
/// A lock with the other technique. Its waiters poll in the same way, and fetch a preempted holder.
type Recovers = Recovering<Spin>;

const PROCESSORS: usize = 8;

fn challenge(level: usize) -> Machine {
    let mut machine = machines::challenge();
    machine.processors = PROCESSORS;
    machine.scheduling.applications = level;
    // The locks' constants count in the machine's own time, so that a backoff of 30 us takes 30 us.
    machine.scale = 1.0;
    machine
}

/// Runs `SECTIONS` critical sections on all processors. Each section takes 2 us, and 6 us of other
/// work follow it.
fn contend<R: RawMutex + Send + Sync + 'static>(level: usize) -> Statistics {
    const SECTIONS: usize = 64_000;
    let body = || {
        let mutex = Arc::new(Mutex::<R, u64>::new(0));
        let workers: Vec<_> = (0..PROCESSORS)
            .map(|number| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let _pinned = topology::pin(number).unwrap();
                    for _ in 0..SECTIONS / PROCESSORS {
                        let mut count = mutex.lock();
                        stanchion_machine::write(&*count);
                        stanchion_machine::work(2_000);
                        *count += 1;
                        drop(count);
                        stanchion_machine::work(6_000);
                    }
                    assert_eq!(preemption::requests(), 0);
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(*mutex.lock(), SECTIONS as u64);
    };
    Simulation::new(challenge(level)).run(body).unwrap().statistics
}

fn sum(statistics: &Statistics, of: impl Fn(&stanchion_simulator::ThreadStatistics) -> u64) -> u64 {
    statistics.threads.iter().map(of).sum()
}

/// Alone the two locks take about the same time: a request costs two writes to a line of the
/// thread's own. At level 2 the ordinary lock takes at least a quarter longer.
#[test]
fn the_ordinary_lock_loses_and_the_preemption_safe_one_does_not() {
    for (level, at_least, at_most) in [(1, 0.9, 1.05), (2, 1.25, 2.0), (3, 1.4, 3.0)] {
        let (ordinary, safe) = (contend::<Ordinary>(level), contend::<Safe>(level));
        let ratio = ordinary.elapsed.as_secs() / safe.elapsed.as_secs();
        println!("level {level}: {} against {}: {ratio:.2}", ordinary.elapsed, safe.elapsed);
        assert!((at_least..at_most).contains(&ratio), "level {level}: {ratio}");
        let breaches = sum(&safe, |thread| thread.breaches);
        assert_eq!(breaches, 0, "a critical section is far shorter than the grace");
        // At a level above 1 some slice ends in a critical section, and the scheduler extends it.
        assert_eq!(sum(&safe, |thread| thread.graces) > 0, level > 1);
        assert_eq!(sum(&ordinary, |thread| thread.graces), 0);
        for statistics in [&ordinary, &safe] {
            assert_eq!(sum(statistics, |thread| thread.preemptions) > 0, level > 1);
        }
    }
}

/// A holder that lost its processor continues on a waiter's processor, at the price of some
/// switches. The scheduler extends no slice, because no thread has asked for it.
#[test]
fn a_waiter_fetches_a_preempted_holder() {
    for level in [2, 3] {
        let (ordinary, recovering) = (contend::<Ordinary>(level), contend::<Recovers>(level));
        let ratio = ordinary.elapsed.as_secs() / recovering.elapsed.as_secs();
        println!("level {level}: {} against {}: {ratio:.2}", ordinary.elapsed, recovering.elapsed);
        assert!(ratio > 1.1, "level {level}: {ratio}");
        assert!(sum(&recovering, |thread| thread.migrations) > 0, "no holder was fetched");
        assert_eq!(sum(&recovering, |thread| thread.graces), 0);
    }
}

/// If the scheduler has extended a thread's slice, the thread gives way in `thank`, which returns
/// true.
#[test]
fn thank_gives_way_after_an_extension() {
    let run = Simulation::new(challenge(2)).run(|| {
        let mut extensions = 0;
        for _ in 0..30 {
            preemption::keep();
            stanchion_machine::work(1_000_000);
            extensions += u32::from(preemption::thank());
        }
        thread::sleep(Duration::from_millis(1));
        assert_eq!(preemption::means(), preemption::Means::Scheduler);
        extensions
    });
    let run = run.unwrap();
    assert!(run.result >= 2, "30 ms are three time slices");
    assert_eq!(sum(&run.statistics, |thread| thread.breaches), 0);
}
