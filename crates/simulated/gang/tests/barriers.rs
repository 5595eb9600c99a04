//! Every barrier on the simulated machines: no member goes on before all have arrived, one leads,
//! and a run with the same seed is the same run.
//!
//! | test | processors | members |
//! | --- | --- | --- |
//! | `each_on_every_machine` | 8, caches of every kind and none | one for each processor |
//! | `more_members_than_processors` | 1, 2, 3, short time slices, random work | 7 |
//! | `one_member_times_out` | 2 | 5, one with a deadline, one too late for it |
//! | `yields_are_counted` | 1 | 2 |

use std::cell::Cell;
use std::time::Duration;

use stanchion_gang_simulated::barrier::{Barrier, Yielding};
use stanchion_gang_simulated::{Broken, Waiter};
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_machine::wait::{Patient, WaitPolicy};
use stanchion_simulator::{Arena, Failure, Machine, Simulation, Statistics, Time, machines};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// The phase of each member, which it writes and the others read.
struct Progress(Vec<Cell<u32>>);

// SAFETY: threads of a simulation take turns.
unsafe impl Send for Progress {}
// SAFETY: as above.
unsafe impl Sync for Progress {}

/// Lets members work for times that differ between members and phases, and cross so many phases.
fn cross<B: Barrier + 'static>(
    machine: &Machine,
    seed: u64,
    members: usize,
    phases: u32,
) -> Result<Statistics, Failure> {
    let mut machine = machine.clone();
    machine.scheduling.spawn = Time::ZERO;
    let body = move || {
        let progress = Arc::new(Progress((0..members).map(|_| Cell::new(0)).collect()));
        let barrier = Arc::new(B::with_members(members).unwrap());
        let threads: Vec<_> = Waiter::all(barrier)
            .into_iter()
            .map(|mut waiter| {
                let progress = progress.clone();
                thread::spawn(move || {
                    let mut led = 0;
                    for phase in 1..=phases {
                        let index = waiter.index() as u64;
                        stanchion_machine::work(
                            (index * 7_919 + u64::from(phase) * 104_729 + seed) % 2_000,
                        );
                        progress.0[waiter.index()].set(phase);
                        led += u32::from(waiter.wait().unwrap().is_leader());
                        for other in &progress.0 {
                            let there = other.get();
                            assert!(there == phase || there == phase + 1, "{there} in {phase}");
                        }
                    }
                    led
                })
            })
            .collect();
        let led: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(led, phases);
    };
    Simulation::new(machine).seed(seed).run(body).map(|run| run.statistics)
}

fn each_on_every_machine<B: Barrier + 'static>() {
    let with = |mut machine: Machine| {
        machine.processors = 8;
        machine
    };
    for machine in [
        machines::symmetry_a(8),
        machines::symmetry_b(8),
        with(machines::firefly()),
        with(machines::makbilan()),
        machines::modern(8),
    ] {
        let run = || {
            cross::<B>(&machine, 1, 8, 4).unwrap_or_else(|why| panic!("{}: {why}", machine.name))
        };
        assert_eq!(run(), run(), "{}: the same run twice", machine.name);
    }
}

fn more_members_than_processors<B: Barrier + 'static>() {
    for processors in [1, 2, 3] {
        let mut machine = machines::modern(processors);
        machine.scheduling.quantum = Time::nanos(3_000);
        for seed in 0..4 {
            cross::<B>(&machine, seed, 7, 12).unwrap();
        }
    }
}

/// Lets the last member arrive too late for another's deadline, in the second phase.
fn one_member_times_out<B: Barrier + 'static>() {
    for seed in 0..4 {
        let body = || {
            let barrier = Arc::new(B::with_members(5).unwrap());
            let threads: Vec<_> = Waiter::all(barrier)
                .into_iter()
                .map(|mut waiter| {
                    thread::spawn(move || {
                        assert!(waiter.wait().is_ok());
                        let deadline = match waiter.index() {
                            1 => Deadline::after(Duration::from_millis(1)),
                            _ => Deadline::NEVER,
                        };
                        if waiter.index() == 4 {
                            stanchion_machine::thread::sleep(Duration::from_millis(3));
                        }
                        let policy = &mut <Patient>::start();
                        assert_eq!(waiter.wait_with(policy, deadline), Err(Broken::TimedOut));
                        // All stay until all have got the reason.
                        waiter
                    })
                })
                .collect();
            let waiters: Vec<_> =
                threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(waiters[0].barrier().broken(), Some(Broken::TimedOut));
        };
        Simulation::new(machines::modern(2)).seed(seed).run(body).unwrap();
    }
}

macro_rules! barriers {
    ([] $({ $test:ident: $barrier:ty, $($rest:tt)* })+) => {$(
        mod $test {
            #[test]
            fn each_on_every_machine() {
                super::each_on_every_machine::<$barrier>();
            }

            #[test]
            fn more_members_than_processors() {
                super::more_members_than_processors::<$barrier>();
            }

            #[test]
            fn one_member_times_out() {
                super::one_member_times_out::<$barrier>();
            }
        }
    )+};
}

stanchion_gang_simulated::__barriers!(barriers);

/// There is one processor. The first to arrive yields until the other, which runs next, has
/// arrived: at least once in each phase.
#[test]
fn yields_are_counted() {
    const PHASES: u64 = 10;
    let body = || {
        let barrier = Arc::new(Yielding::new(2).unwrap());
        let member = |barrier: Arc<Yielding>| {
            move || (0..PHASES).for_each(|_| assert!(barrier.wait().is_ok()))
        };
        let other = thread::spawn(member(barrier.clone()));
        member(barrier.clone())();
        other.join().unwrap();
        barrier.yields()
    };
    let yields = Simulation::new(machines::modern(1)).run(body).unwrap().result;
    assert!((PHASES..=2 * PHASES).contains(&yields), "{yields} yields");
}
