//! The whole executor on the simulated machines, under schedules that a seed chooses: the test for
//! what is too large for loom.
//!
//! A thread that is never woken is a deadlock in virtual time, and is reported as such. Time slices
//! end in the middle of everything, and a new thread runs late. These tests cannot find a wrong
//! memory ordering, because a simulated run has one order of all accesses. For that there are
//! loom's models.
//!
//! Each scene says what could go wrong in it:
//!
//! - Gangs of all sizes, spawned from several threads: a wake-up is lost when processors change
//!   hands, two members hold one processor, or a gang is forgotten.
//! - Gangs of which some are cancelled at some time: a member that sleeps while it is off never
//!   learns it, or a member waits for one that has left.
//! - Gangs with members that panic at some point, return early, or return an error: the same.
//! - Gangs that spawn gangs and wait for them, on several levels: a waiting member keeps its
//!   processor, or all wait for each other.
//! - Members that block for a while, at any time: a slot with only blocked members stays on, or a
//!   member that comes back gets no processor.
//! - Members that do not check for several quanta: others wait for them for ever.
//! - Executors that are dropped by members, or while gangs run: threads stay, or gangs are cut off.
//!
//! Each scene ends its executor and counts: gangs that were spawned have ended, each member once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use stanchion_gang_simulated::{
    Alternates, Ended, GangError, GangExecutor, Member, Packing, SpawnError,
};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_simulator::{Arena, Machine, Simulation, Time, machines};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// The number of seeds of each scene.
const SEEDS: u64 = 60;

fn machine(seed: u64) -> Machine {
    let mut machine = machines::modern(1 + seed as usize % 4);
    machine.scheduling.quantum = Time::nanos(3_000 + 1_237 * (seed % 17));
    machine.scheduling.spawn = Time::nanos(400 * (seed % 9));
    machine
}

fn on_machines(name: &str, scene: fn(GangExecutor)) {
    for seed in 0..SEEDS {
        let run = Simulation::new(machine(seed)).seed(seed).run(move || scene(executor(seed)));
        if let Err(failure) = run {
            panic!("{name}, seed {seed}: {failure}");
        }
    }
}

fn executor(seed: u64) -> GangExecutor {
    let packing = if seed.is_multiple_of(2) { Packing::BestFit } else { Packing::FirstFit };
    let alternates = match seed % 3 {
        0 => Alternates::None,
        1 => Alternates::Gangs,
        _ => Alternates::Fragments,
    };
    GangExecutor::builder()
        .processors(3)
        .quantum(Duration::from_nanos(50_000 + 7_919 * (seed % 7)))
        .spin(Duration::from_nanos(3_000 * (seed % 5)))
        .packing(packing)
        .alternates(alternates)
        .pin(seed % 4 < 2)
        .build()
        .expect("simulated threads are free")
}

/// Returns a number below `most`, by the seed.
fn any(most: u64) -> u64 {
    stanchion_machine::hint::entropy() % most
}

/// Computes for a part of so many nanoseconds.
fn compute(nanos: u64) {
    stanchion_machine::work(any(nanos));
}

/// Ends the executor, and checks that all gangs have ended.
fn end(executor: GangExecutor, gangs: u64) {
    let other = executor.clone();
    executor.shutdown();
    let metrics = other.metrics();
    assert_eq!((metrics.gangs_begun, metrics.gangs_ended), (gangs, gangs));
    assert_eq!(metrics.slots_used, 0);
}

/// Computes and meets the others several times, and returns the sum of all phases.
fn meet(member: &mut Member, phases: u64) -> Result<u64, Ended> {
    let mut sum = 0;
    for phase in 0..phases {
        compute(9_000);
        sum += member.all_reduce(phase, |a, b| a + b)?;
    }
    Ok(sum)
}

fn sizes(executor: GangExecutor) {
    let runs = Arc::new(AtomicU32::fresh(0));
    let spawners: Vec<_> = (0..3)
        .map(|_| {
            let (executor, runs) = (executor.clone(), runs.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let members = 1 + any(3) as usize;
                    let phases = any(8);
                    let counted = runs.clone();
                    let gang = executor.spawn(members, move |member: &mut Member| {
                        counted.fetch_add(1, Relaxed);
                        meet(member, phases)
                    });
                    let gang = gang.expect("there are slots enough");
                    compute(40_000);
                    let sum = phases * phases.saturating_sub(1) / 2 * members as u64;
                    assert_eq!(gang.join().expect("no panic"), vec![sum; members]);
                    runs.fetch_sub(members as u32, Relaxed);
                }
            })
        })
        .collect();
    spawners.into_iter().for_each(|spawner| spawner.join().expect("a spawner"));
    assert_eq!(runs.load(Relaxed), 0);
    end(executor, 9);
}

fn cancelled(executor: GangExecutor) {
    let gangs: Vec<_> = (0..5)
        .map(|_| {
            let members = 1 + any(3) as usize;
            executor.spawn(members, |member: &mut Member| meet(member, 20)).expect("slots")
        })
        .collect();
    let mut cancelled = Vec::new();
    for (number, gang) in gangs.into_iter().enumerate() {
        compute(120_000);
        if number % 2 == 0 {
            gang.cancel();
        }
        cancelled.push((number, gang));
    }
    for (number, gang) in cancelled {
        match gang.join() {
            Ok(results) => assert!(results.iter().all(|&result| result == results[0])),
            Err(GangError::Cancelled) if number % 2 == 0 => {}
            Err(other) => panic!("{other}"),
        }
    }
    end(executor, 5);
}

/// The way in which a member ends, for the scene of gangs that end badly.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Panics,
    Leaves,
    Returns,
}

fn badly(executor: GangExecutor) {
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..4 {
        let members = 1 + any(3) as usize;
        let (index, when) = (any(members as u64) as usize, any(5));
        let how = [How::Panics, How::Leaves, How::Returns][any(3) as usize];
        let other = executor.spawn(2, |member: &mut Member| meet(member, 6)).expect("slots");
        let gang = executor.spawn(members, move |member: &mut Member| {
            meet(member, when)?;
            if member.index() == index {
                match how {
                    How::Panics => std::panic::panic_any("on purpose"),
                    How::Leaves => return Err(member.leave()),
                    How::Returns => return Ok(0),
                }
            }
            meet(member, 5)
        });
        match gang.expect("slots").join() {
            Err(GangError::Panicked { member, .. }) => {
                assert!(how == How::Panics && member == index)
            }
            Err(GangError::Left { member }) => assert!(how != How::Panics && member == index),
            Ok(results) => assert!(how == How::Returns && results == [0]),
            Err(wrong) => panic!("{wrong}"),
        }
        other.join().expect("it is another gang");
    }
    end(executor, 8);
}

/// Spawns gangs of so many levels below this one, and returns their number.
fn nest(member: &mut Member, levels: u32) -> Result<u32, Ended> {
    compute(5_000);
    let mut gangs = 0;
    if levels > 0 {
        let size = 1 + member.index();
        let inner =
            member.executor().spawn(size, move |member: &mut Member| nest(member, levels - 1));
        compute(5_000);
        gangs = 1 + inner.expect("slots").join().expect("no panic").iter().sum::<u32>();
    }
    member.barrier()?;
    Ok(gangs)
}

fn nested(executor: GangExecutor) {
    let gang = executor.spawn(3, |member: &mut Member| nest(member, 2)).expect("slots");
    let other = executor.spawn(2, |member: &mut Member| meet(member, 9)).expect("slots");
    let inner: u32 = gang.join().expect("no panic").iter().sum();
    other.join().expect("no panic");
    end(executor, 2 + u64::from(inner));
}

fn blocked(executor: GangExecutor) {
    let gangs: Vec<_> = (0..4)
        .map(|_| {
            let gang = executor.spawn(1 + any(3) as usize, |member: &mut Member| {
                for _ in 0..6 {
                    if any(3) == 0 {
                        member.blocking(|| thread::sleep(Duration::from_nanos(any(90_000))));
                    }
                    meet(member, 2)?;
                }
                Ok(())
            });
            gang.expect("slots")
        })
        .collect();
    gangs.into_iter().for_each(|gang| drop(gang.join().expect("no panic")));
    end(executor, 4);
}

fn never_checks(executor: GangExecutor) {
    let gangs: Vec<_> = (0..4)
        .map(|number| {
            let gang = executor.spawn(1 + any(3) as usize, move |member: &mut Member| {
                meet(member, 3)?;
                if number % 2 == 0 {
                    stanchion_machine::work(400_000 + any(200_000));
                }
                meet(member, 3)
            });
            gang.expect("slots")
        })
        .collect();
    gangs.into_iter().for_each(|gang| drop(gang.join().expect("no panic")));
    end(executor, 4);
}

fn dropped(executor: GangExecutor) {
    let runs = Arc::new(AtomicU32::fresh(0));
    let mut members = 0;
    for _ in 0..3 {
        let size = 1 + any(3) as usize;
        members += size as u32;
        let (counted, held, phases) = (runs.clone(), executor.clone(), any(4));
        let gang = executor.spawn(size, move |member: &mut Member| {
            drop(held.clone());
            meet(member, phases)?;
            counted.fetch_add(1, Relaxed);
            Ok(())
        });
        drop(gang.expect("slots"));
    }
    drop(executor);
    while runs.load(Relaxed) < members {
        thread::sleep(Duration::from_micros(10));
    }
}

fn scoped(executor: GangExecutor) {
    let runs = AtomicU32::fresh(0);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        executor.scope(|scope| {
            for _ in 0..3 {
                let gang = scope.spawn(1 + any(3) as usize, |member: &mut Member| {
                    if member.index() == 0 {
                        let inner = scope.spawn(1, |member: &mut Member| meet(member, 1));
                        core::mem::forget(inner.expect("slots"));
                        runs.fetch_add(1, Relaxed);
                    }
                    meet(member, 4)
                });
                core::mem::forget(gang.expect("slots"));
            }
            assert!(matches!(scope.spawn(4, |_| Ok(())), Err(SpawnError::TooLarge { .. })));
        });
    }));
    caught.expect("no panic");
    assert_eq!(runs.load(Relaxed), 3);
    end(executor, 6);
}

#[test]
fn gangs_of_all_sizes() {
    on_machines("sizes", sizes);
}

#[test]
fn gangs_that_are_cancelled() {
    on_machines("cancelled", cancelled);
}

#[test]
fn gangs_that_end_badly() {
    on_machines("badly", badly);
}

#[test]
fn gangs_in_gangs() {
    on_machines("nested", nested);
}

#[test]
fn gangs_that_block() {
    on_machines("blocked", blocked);
}

#[test]
fn gangs_that_never_check() {
    on_machines("never_checks", never_checks);
}

#[test]
fn executors_that_are_dropped() {
    on_machines("dropped", dropped);
}

#[test]
fn gangs_in_scopes() {
    on_machines("scoped", scoped);
}
