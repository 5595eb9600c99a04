//! The watch on a simulated machine: the sleeper is woken at the moment of the switch.

use stanchion_machine::atomic::{AtomicUsize, Ordering::Relaxed};
use stanchion_machine::clock::{self, Deadline};
use stanchion_machine::presence::watch::{Watch, Woken};
use stanchion_machine::presence::{self, Presence};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion_machine::{thread, topology};
use stanchion_machine_simulated as stanchion_machine;
use stanchion_simulator::{Simulation, machines};
use std::time::Duration;

fn on<R: 'static>(processors: usize, body: impl FnOnce() -> R + 'static) -> R {
    Simulation::new(machines::modern(processors)).run(body).unwrap().result
}

/// Spawns a thread that runs `body`. Returns the index of the thread and its handle.
fn spawn_other(body: impl FnOnce() + Send + 'static) -> (usize, thread::JoinHandle<()>) {
    let index = Arc::new(AtomicUsize::new(usize::MAX));
    let published = index.clone();
    let handle = thread::spawn(move || {
        published.store(thread::index().unwrap(), Relaxed);
        body();
    });
    let index = wait_until(&*index, Relaxed, |index| index != usize::MAX, &mut <Patient>::start());
    (index, handle)
}

#[test]
fn a_block_and_its_end_wake_the_sleeper_when_they_happen() {
    on(2, || {
        let watch = Watch::new();
        let (index, handle) = spawn_other(|| {
            stanchion_machine::work(100_000);
            thread::sleep(Duration::from_micros(300));
            stanchion_machine::work(100_000);
        });
        let start = clock::now();
        let mut seen = Vec::new();
        loop {
            assert!(watch.arm(index));
            match presence::of(index) {
                Presence::Unknown => break,
                now => seen.push((now, clock::now().nanos_since(start) / 50_000)),
            }
            assert_eq!(watch.wait(Deadline::NEVER), Woken::Switched);
            if presence::of(index) == Presence::Unknown {
                break;
            }
        }
        // Times are in units of 50 us. A sleeper is late by a few microseconds.
        let kinds: Vec<_> = seen.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [Presence::Running, Presence::Blocked, Presence::Running]);
        assert!(seen[1].1 >= 1 && seen[1].1 <= 2, "{seen:?}");
        assert!(seen[2].1 >= 7 && seen[2].1 <= 8, "{seen:?}");
        assert!(!watch.arm(index), "the thread has ended");
        handle.join().unwrap();
    });
}

#[test]
fn a_preemption_wakes_the_sleeper() {
    on(2, || {
        let watch = Arc::new(Watch::new());
        let (index, handle) = spawn_other(|| {
            let _pinned = topology::pin(1).unwrap();
            stanchion_machine::work(200_000_000);
        });
        let rival = thread::spawn(|| {
            let _pinned = topology::pin(1).unwrap();
            stanchion_machine::work(200_000_000);
        });
        let mut seen = Vec::new();
        while seen.len() < 3 {
            assert!(watch.arm(index));
            let now = presence::of(index);
            if seen.last() != Some(&now) {
                seen.push(now);
            }
            assert_eq!(watch.wait(Deadline::NEVER), Woken::Switched);
        }
        assert!(
            seen.contains(&Presence::Preempted) && seen.contains(&Presence::Running),
            "{seen:?}"
        );
        handle.join().unwrap();
        rival.join().unwrap();
    });
}

#[test]
fn calls_deadlines_and_switches_end_waits_separately() {
    on(2, || {
        let watch = Arc::new(Watch::new());
        let soon = || Deadline::after(Duration::from_micros(50));
        assert_eq!(watch.wait(soon()), Woken::TimedOut);
        watch.wake();
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Woken);
        let caller = {
            let watch = watch.clone();
            thread::spawn(move || {
                stanchion_machine::work(20_000);
                watch.wake();
            })
        };
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Woken);
        caller.join().unwrap();

        let (index, handle) = spawn_other(|| {
            for _ in 0..4 {
                thread::sleep(Duration::from_micros(100));
            }
        });
        assert!(watch.arm(index));
        watch.disarm(index);
        assert_eq!(watch.wait(soon()), Woken::TimedOut, "the watch is disarmed");
        assert!(watch.arm(index));
        stanchion_machine::work(200_000);
        watch.wake();
        assert_eq!(
            watch.wait(Deadline::NEVER),
            Woken::Woken,
            "the call counts first, and the switch is kept"
        );
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Switched);
        stanchion_machine::work(200_000);
        assert_eq!(watch.wait(soon()), Woken::TimedOut, "the first switch has disarmed the watch");
        handle.join().unwrap();
    });
}
