//! `CoResident` with real threads. Which members spin, yield and sleep changes from phase to phase,
//! and no member goes on too early or waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use stanchion_gang::barrier::{Barrier, CoResident};
use stanchion_gang::{Broken, Waiter};

/// Works before a phase: mostly not at all, sometimes for so long that the others begin to yield or
/// sleep, or have learnt to.
fn work(index: usize, phase: u32) {
    match (index as u32 * 7 + phase * 13) % 61 {
        0 => thread::sleep(Duration::from_micros(300)),
        1..4 => thread::yield_now(),
        _ => {}
    }
}

fn cross(members: usize, phases: u32, pin: bool) {
    let barrier = Arc::new(CoResident::new(members).unwrap());
    let progress: Vec<AtomicU32> = (0..members).map(|_| AtomicU32::new(0)).collect();
    let processors = stanchion_machine::topology::processors();
    let led: u32 = thread::scope(|scope| {
        let member = |mut waiter: Waiter<Arc<CoResident>>| {
            let (progress, processors) = (&progress, &processors);
            scope.spawn(move || {
                let index = waiter.index();
                let _pinned = pin.then(|| {
                    stanchion_machine::topology::pin(processors[index % processors.len()])
                });
                let mut led = 0;
                for phase in 1..=phases {
                    work(index, phase);
                    progress[index].store(phase, Relaxed);
                    led += u32::from(waiter.wait().unwrap().is_leader());
                    for other in progress {
                        let there = other.load(Relaxed);
                        assert!(there == phase || there == phase + 1, "{there} in {phase}");
                    }
                }
                led
            })
        };
        let members: Vec<_> = Waiter::all(barrier).into_iter().map(member).collect();
        members.into_iter().map(|member| member.join().unwrap()).sum()
    });
    assert_eq!(led, phases);
}

#[test]
fn as_many_members_as_processors_and_more() {
    for members in [1, 2, 3, 5, 9] {
        cross(members, 600, false);
    }
}

#[test]
fn pinned_members_that_see_each_other() {
    cross(2, 1_000, true);
    cross(4, 300, true);
}

#[test]
fn a_timeout_wakes_sleepers() {
    let barrier = CoResident::new(3).unwrap();
    let mut waiters = Waiter::all(&barrier);
    let mut late = waiters.remove(0);
    thread::scope(|scope| {
        for mut waiter in waiters {
            scope.spawn(move || {
                // Longer than it spins and yields.
                let timeout = Duration::from_millis(if waiter.index() == 1 { 20 } else { 60_000 });
                assert_eq!(waiter.wait_timeout(timeout), Err(Broken::TimedOut));
            });
        }
    });
    assert_eq!(late.wait(), Err(Broken::TimedOut));
    assert_eq!(barrier.broken(), Some(Broken::TimedOut));
}

#[test]
fn a_panic_wakes_sleepers() {
    let barrier = CoResident::new(2).unwrap();
    let mut waiters = Waiter::all(&barrier);
    let panics = waiters.remove(1);
    thread::scope(|scope| {
        let waits = scope.spawn(move || waiters[0].wait());
        let panicked = scope.spawn(move || {
            let _waiter = panics;
            thread::sleep(Duration::from_millis(5));
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.join().is_err());
        assert_eq!(waits.join().unwrap(), Err(Broken::Panicked));
    });
}
