//! Asymmetric fences on simulated machines: with the kernel's barrier the heavy side pays, without
//! it both sides do.

use stanchion_machine::atomic::{Ordering, fence};
use stanchion_machine::{asymmetric, thread};
use stanchion_machine_simulated as stanchion_machine;
use stanchion_simulator::{Machine, Simulation, Time, inside, machines};

#[test]
fn the_light_fence_takes_no_time_where_the_kernel_has_a_barrier() {
    let run = Simulation::new(machines::modern(1)).run(|| {
        asymmetric::light();
        assert!(asymmetric::is_free());
    });
    assert_eq!(run.unwrap().statistics.elapsed, Time::ZERO);
}

#[test]
fn the_heavy_fence_interrupts_the_other_processors() {
    let run = Simulation::new(machines::modern(4)).run(|| {
        let others: Vec<_> = (0..3)
            .map(|_| thread::spawn(|| (0..1_000).for_each(|_| stanchion_machine::work(1_000))))
            .collect();
        stanchion_machine::work(200_000);
        asymmetric::heavy();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    assert_eq!(run.unwrap().statistics.interrupts, 3);
}

/// Returns the time of `fence`, and the interrupts, on a machine where another thread runs too.
fn fenced(machine: Machine, fence: fn()) -> (Time, u64) {
    let run = Simulation::new(machine).run(move || {
        let other = thread::spawn(|| stanchion_machine::work(50_000_000));
        stanchion_machine::work(10_000_000);
        assert!(!asymmetric::is_free());
        let began = inside::time();
        fence();
        let took = inside::time().since(began);
        other.join().unwrap();
        took
    });
    let run = run.unwrap();
    (run.result, run.statistics.interrupts)
}

#[test]
fn without_a_barrier_of_the_kernel_both_sides_pay_for_a_fence() {
    for name in machines::NAMES {
        let machine = machines::by_name(name).unwrap();
        let papers = machine.membarrier.is_none();
        let machine = machine.symmetric_fences();
        let costs = [|| fence(Ordering::SeqCst), asymmetric::light, asymmetric::heavy]
            .map(|side| fenced(machine.clone(), side));
        assert_eq!(costs, [costs[0]; 3], "{name}");
        // Their accesses are in order: a fence has nothing to wait for.
        assert_eq!(costs[0].0 == Time::ZERO, papers, "{name}");
        assert_eq!(costs[0].1, 0, "{name}");
    }
}

#[test]
fn barriers_that_are_too_many_are_left_for_a_while() {
    let run = Simulation::new(machines::modern(2)).run(|| {
        let other = thread::spawn(|| (0..200).for_each(|_| stanchion_machine::work(1_000_000)));
        stanchion_machine::work(10_000);
        let before = (0..1_000).position(|_| {
            asymmetric::heavy();
            !asymmetric::is_free()
        });
        // A quarter of a millisecond of barriers is too much, and a barrier takes microseconds.
        assert!((10..250).contains(&before.unwrap()), "{before:?}");
        asymmetric::heavy();
        assert!(!asymmetric::is_free());
        stanchion_machine::work(50_000_000);
        asymmetric::heavy();
        assert!(asymmetric::is_free());
        other.join().unwrap();
    });
    run.unwrap();
}

#[test]
fn threads_that_want_a_barrier_at_the_same_time_share_one() {
    let mut machine = machines::modern(16);
    // All call at the same moment, and run until the last has its barrier.
    machine.scheduling.spawn = Time::ZERO;
    let run = Simulation::new(machine).run(|| {
        let call = || {
            stanchion_machine::work(1_000_000);
            asymmetric::heavy();
            stanchion_machine::work(1_000_000);
        };
        let all: Vec<_> = (0..16).map(|_| thread::spawn(call)).collect();
        all.into_iter().for_each(|one| one.join().unwrap());
    });
    // Each by itself would interrupt 15 processors.
    let interrupts = run.unwrap().statistics.interrupts;
    assert!((1..=3 * 15).contains(&interrupts), "{interrupts}");
}
