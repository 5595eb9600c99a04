//! Multiprogramming levels of the 1997 paper on its machine: what a lock loses when other applications have the processors part of the time, and what
//! it helps that its holder asks not to be preempted.
//!
//! An experiment is a body; the level is the machine's. `machine.scheduling.applications` of 2 takes each processor away for a quantum of 10 ms
//! after each quantum of ours.

use std::time::Duration;

use lock_api::{Mutex, RawMutex};
use machine::sync::Arc;
use machine::wait::Spin;
use machine::{preemption, thread, topology};
use stanchion_simulator::{Arena, Machine, Simulation, Statistics, machines};
use stanchion_spin_simulated::contention::Polling;
use stanchion_spin_simulated::{PreemptionSafe, Recovering, TestAndSet};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// The locks of the figures: the same but for the request.
type Ordinary = TestAndSet<Polling, Spin>;
type Safe = PreemptionSafe<Polling, Spin>;
/// The other technique: its waiters poll in the same way, and fetch a holder that was preempted.
type Recovers = Recovering<Spin>;

const PROCESSORS: usize = 8;

fn challenge(level: usize) -> Machine {
    let mut machine = machines::challenge();
    machine.processors = PROCESSORS;
    machine.scheduling.applications = level;
    // The constants of the locks in the machine's own time, so that a backoff of 30 us is one.
    machine.scale = 1.0;
    machine
}

/// So many critical sections in all, of 2 us each, on all processors, and 6 us of other work after each.
fn contend<R: RawMutex + Send + Sync + 'static>(level: usize) -> Statistics {
    const SECTIONS: usize = 16_000;
    let body = || {
        let mutex = Arc::new(Mutex::<R, u64>::new(0));
        let workers: Vec<_> = (0..PROCESSORS)
            .map(|number| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let _pinned = topology::pin(number).unwrap();
                    for _ in 0..SECTIONS / PROCESSORS {
                        let mut count = mutex.lock();
                        machine::write(&*count);
                        machine::work(2_000);
                        *count += 1;
                        drop(count);
                        machine::work(6_000);
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

/// By half and more; alone they are alike, for the request costs two writes to a line of the thread's own.
#[test]
fn the_ordinary_lock_loses_and_the_preemption_safe_one_does_not() {
    for (level, at_least, at_most) in [(1, 0.9, 1.05), (2, 1.25, 2.0), (3, 1.4, 3.0)] {
        let (ordinary, safe) = (contend::<Ordinary>(level), contend::<Safe>(level));
        let ratio = ordinary.elapsed.as_secs() / safe.elapsed.as_secs();
        println!("level {level}: {} against {}: {ratio:.2}", ordinary.elapsed, safe.elapsed);
        assert!((at_least..at_most).contains(&ratio), "level {level}: {ratio}");
        let breaches = sum(&safe, |thread| thread.breaches);
        assert_eq!(breaches, 0, "sections are far shorter than the grace");
        // Who is stopped in its section has been let stay before.
        assert_eq!(sum(&safe, |thread| thread.graces) > 0, level > 1);
        assert_eq!(sum(&ordinary, |thread| thread.graces), 0);
        for statistics in [&ordinary, &safe] {
            assert_eq!(sum(statistics, |thread| thread.preemptions) > 0, level > 1);
        }
    }
}

/// A holder that lost its processor goes on at a waiter's, at the price of some switches; it is not let stay, for nobody has asked.
#[test]
fn a_waiter_fetches_a_preempted_holder() {
    for level in [2, 3] {
        let (ordinary, recovering) = (contend::<Ordinary>(level), contend::<Recovers>(level));
        let ratio = ordinary.elapsed.as_secs() / recovering.elapsed.as_secs();
        println!("level {level}: {} against {}: {ratio:.2}", ordinary.elapsed, recovering.elapsed);
        assert!(ratio > 1.1, "level {level}: {ratio}");
        assert!(sum(&recovering, |thread| thread.migrations) > 0, "somebody was fetched");
        assert_eq!(sum(&recovering, |thread| thread.graces), 0);
    }
}

/// A thread that was let stay gives way in `thank`, and hears of it.
#[test]
fn thanks_give_way() {
    let run = Simulation::new(challenge(2)).run(|| {
        let mut ways = 0;
        for _ in 0..30 {
            preemption::keep();
            machine::work(1_000_000);
            ways += u32::from(preemption::thank());
        }
        thread::sleep(Duration::from_millis(1));
        assert_eq!(preemption::means(), preemption::Means::Scheduler);
        ways
    });
    let run = run.unwrap();
    assert!(run.result >= 2, "30 ms are three slices");
    assert_eq!(sum(&run.statistics, |thread| thread.breaches), 0);
}
