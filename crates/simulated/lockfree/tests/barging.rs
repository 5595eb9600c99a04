//! The waits of `Barging` and `BargingAtEnd` on a simulated processor that another thread wants.

use stanchion_lockfree_simulated::barging::BargingBackoff;
use stanchion_machine::thread;
use stanchion_machine::wait::WaitPolicy;
use stanchion_simulator::{Arena, Simulation, machines};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// The first sleep of a waiter, in nanoseconds.
const SLEEP: u64 = 50_000;

/// Nanoseconds that a yield takes at least after which a waiter at an end sleeps.
const LONG: u64 = 350_000;

/// Returns how long a waiter's first two pauses take, in nanoseconds. During the first one another
/// thread does so much `work`, and ends.
fn pauses<const AT_END: bool>(work: u64) -> [u64; 2] {
    let run = Simulation::new(machines::modern(1)).run(move || {
        let mut policy = BargingBackoff::<AT_END>::start();
        let other = thread::spawn(move || stanchion_machine::work(work));
        let took = [(); 2].map(|()| {
            let began = stanchion_machine::clock::now();
            policy.pause();
            stanchion_machine::clock::now().nanos_since(began)
        });
        other.join().expect("no panic");
        took
    });
    run.unwrap_or_else(|failure| panic!("{failure}")).result
}

#[test]
fn at_an_end_a_waiter_sleeps_after_a_long_yield() {
    let [first, second] = pauses::<true>(600_000);
    assert!(first > LONG, "the other thread ran for {first} ns");
    assert!(second >= SLEEP, "the waiter came back after {second} ns");
}

#[test]
fn after_a_short_yield_it_yields_again() {
    let [first, second] = pauses::<true>(100_000);
    assert!(first < LONG && second < SLEEP, "{first} and {second} ns");
}

#[test]
fn under_one_lock_it_yields_again_after_a_long_one_too() {
    let [first, second] = pauses::<false>(600_000);
    assert!(first > LONG && second < SLEEP, "{first} and {second} ns");
}
