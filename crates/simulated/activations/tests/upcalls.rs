//! The runtime's upcalls on the simulated machines, compared with the simulator's record of which
//! thread was on which processor when.
//!
//! There a record of a switch is the switch itself, without delay and without loss, and every
//! thread that looks sees it. So each upcall must have a cause in that record, at the very
//! nanosecond that its latency gives. None may be counted twice. A switch that a thread looks at
//! must be counted, as late as the machine's own times allow.
//!
//! Each scene, and the failure that it looks for:
//!
//! - one thread blocks while others are ready, and no other worker runs: the monitor is woken late,
//!   or not, or not again;
//! - one thread blocks while others run past it: they count what the others have counted; a block
//!   of before, or none;
//! - many threads block, with few kernel threads to stand in for them: a block without a spare is
//!   counted again and again; a return is not counted;
//! - kernel threads of others take the processors: a thread that was woken, and has no processor,
//!   counts as preempted;
//! - threads block while others have the processors: the same; a return is not counted because the
//!   next event is a preemption;
//! - threads that wait for each other: an upcall is counted that the kernel has not caused;
//! - one slot: its assignment is not counted, or twice.

#[path = "upcalls/book.rs"]
mod book;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use book::{EPOCH, Why};
use stanchion_activations_simulated::{
    Runtime, RuntimeBuilder, Upcall, blocking, current, park, spawn, yield_now,
};
use stanchion_machine::{clock, thread};
use stanchion_simulator::{Arena, Machine, Time, machines};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// Seeds of each scene; a third of them for each number of slots.
const SEEDS: u64 = 48;

/// The time that a short thread computes, in ns.
const SHORT: u64 = 4_000;
/// A block that lasts.
const NAP: u64 = 250_000;

fn modern(processors: usize, seed: u64) -> Machine {
    let mut machine = machines::modern(processors);
    machine.scheduling.quantum = Time::nanos(60_000 + 3_237 * (seed % 17));
    machine.scheduling.spawn = Time::nanos(400 * (seed % 9));
    machine
}

fn builder(processors: usize) -> RuntimeBuilder {
    Runtime::builder().processors(processors).stack_size(256 * 1024).trace(100_000)
}

/// Up to `most`, by the seed.
fn any(most: u64) -> u64 {
    stanchion_machine::hint::entropy() % most
}

/// Threads that any kernel thread can begin: something is ready until the last of them has begun.
fn stock(runtime: &Runtime, count: usize, nanos: u64) {
    (0..count).for_each(|_| drop(runtime.spawn(move || stanchion_machine::work(nanos))));
}

/// From a switch until a sleeper that it wakes runs on an idle processor, and has looked at so
/// many slots.
fn until_woken(machine: &Machine, slots: usize) -> u64 {
    let times = &machine.scheduling;
    // Arming each is a way into the kernel; beside that there are some accesses that miss.
    let looks = (times.wake + Time::nanos(2_000)) * slots as u64;
    (times.wake + times.kick + times.wakeup + times.switch + looks).as_nanos()
}

/// When threads began to block, in ns of the run.
type Naps = Arc<Mutex<Vec<u64>>>;

/// Blocks for so long, and writes it down. A lock of the standard library's takes no virtual time.
fn nap(naps: &Naps, nanos: u64) {
    naps.lock().expect("no thread panics with it").push(clock::monotonic() - EPOCH);
    thread::sleep(Duration::from_nanos(nanos));
}

/// One thread that blocks now and then, while others are ready: what was told of each block, and
/// how late.
fn one_blocks(name: &str, slots: usize, rivals: u64, late: impl Fn(&Machine) -> u64) {
    for seed in 0..SEEDS / 3 {
        // One for the monitor, one for the worker that comes back, one for the caller.
        let machine = modern(slots + 3, seed);
        let late = late(&machine);
        let naps = Naps::default();
        let noted = naps.clone();
        let ran = book::run(name, seed, machine, builder(slots), move |runtime| {
            // They keep the other slots.
            let rivals: Vec<_> = (1..slots)
                .map(|_| runtime.spawn(move || stanchion_machine::work(rivals)))
                .collect();
            let blocks = runtime.spawn(move || {
                park();
                for _ in 0..4 {
                    stanchion_machine::work(20_000 + any(9_000));
                    nap(&noted, NAP + any(NAP));
                    yield_now();
                }
            });
            // They begin before the others, and the one goes on when those are there.
            thread::sleep(Duration::from_micros(100));
            stock(runtime, 1_000 * slots, SHORT);
            blocks.thread().unpark();
            rivals.into_iter().for_each(|rival| rival.join().expect("no panic"));
            blocks.join().expect("no panic");
        });
        let naps = naps.lock().expect("no thread panics with it");
        assert_eq!(naps.len(), 4);
        for &from in naps.iter() {
            let off = ran.offs_for(Why::Blocked).find(|off| off.from == from);
            let off = off.expect("the simulator's book has it, at the same nanosecond");
            let told = ran.counted_at(Upcall::Blocked, from);
            let told = told.unwrap_or_else(|| panic!("{name}, seed {seed}: {off:?} was not seen"));
            assert!(told.latency <= Some(late), "{name}, seed {seed}: {told:?}, not by {late}");
            let back = ran.counted_at(Upcall::Unblocked, off.until);
            assert!(back.is_some(), "{name}, seed {seed}: the end of {off:?} was not counted");
        }
        assert_eq!(ran.counted_of(Upcall::Preempted).count(), 0, "{name}, seed {seed}");
        assert!(ran.metrics.handoffs >= 4, "{name}, seed {seed}");
    }
}

#[test]
fn monitor_reports_a_block_as_soon_as_it_can_be_woken() {
    for slots in [1, 2, 4] {
        let late = move |machine: &Machine| until_woken(machine, slots);
        one_blocks("seen by the monitor", slots, 20_000_000, late);
    }
}

#[test]
fn a_running_processor_tells_of_a_block_at_its_next_scheduling_points() {
    for slots in [2, 4] {
        // It looks at one slot each time.
        let late = move |_: &Machine| (SHORT + 1_500) * slots as u64;
        one_blocks("seen in passing", slots, 0, late);
    }
}

/// Every second thread sleeps now and then, and so do some of those that they make.
fn many_block(runtime: &Runtime, threads: usize) {
    let threads: Vec<_> = (0..threads)
        .map(|number| {
            runtime.spawn(move || {
                for round in 0..3 {
                    let child = spawn(move || {
                        stanchion_machine::work(any(SHORT));
                        if number % 3 == 0 {
                            thread::sleep(Duration::from_nanos(any(2 * NAP)));
                        }
                    });
                    stanchion_machine::work(any(9_000));
                    match (number + round) % 4 {
                        0 => blocking(|| thread::sleep(Duration::from_nanos(any(NAP)))),
                        1 => thread::sleep(Duration::from_nanos(any(NAP))),
                        _ => yield_now(),
                    }
                    child.join().expect("no panic");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn each_block_and_return_is_counted_once() {
    let mut told = 0;
    for seed in 0..2 * SEEDS {
        let slots = 1 + seed as usize % 4;
        let machine = modern([2, 4, 8][seed as usize % 3], seed);
        let builder = builder(slots).spare_kernel_threads((seed / 4 % 5) as usize);
        let ran =
            book::run("many block", seed, machine, builder, |runtime| many_block(runtime, 12));
        told += ran.counted_of(Upcall::Blocked).count();
    }
    assert!(told > 1_000, "only {told} blocks were seen");
}

/// Kernel threads that are no workers, and compute for so long.
fn others(count: usize, nanos: u64) -> Vec<thread::JoinHandle<()>> {
    (0..count).map(|_| thread::spawn(move || stanchion_machine::work(nanos))).collect()
}

#[test]
fn preemption_is_counted_once_if_a_running_worker_looks() {
    let mut seen = 0;
    for seed in 0..SEEDS {
        let slots = 2 + seed as usize % 3;
        let ran = book::run(
            "others compute",
            seed,
            modern(slots, seed),
            builder(slots),
            move |runtime| {
                let others = others(1 + seed as usize % 3, 2_000_000);
                stock(runtime, 300 * slots, SHORT);
                others.into_iter().for_each(|other| other.join().expect("no panic"));
            },
        );
        for off in ran.offs_for(Why::Preempted) {
            // It looks at one slot each time, and the book's stays are not quite its scheduling
            // points.
            if ran.is_in_thread(off) && ran.looks_meanwhile(off) > 2 * slots {
                seen += 1;
                let told = ran.counted_at(Upcall::Preempted, off.from);
                assert!(told.is_some(), "seed {seed}: {off:?} was not counted");
            }
        }
        let blocks = ran.offs_for(Why::Blocked).filter(|off| ran.is_in_thread(off)).count();
        assert!(ran.counted_of(Upcall::Blocked).count() <= blocks, "seed {seed}");
    }
    assert!(seen > 100, "only {seen} slices ended beside a worker that looks");
}

#[test]
fn woken_thread_without_a_processor_was_not_preempted() {
    for seed in 0..SEEDS {
        let slots = 1 + seed as usize % 4;
        let builder = builder(slots).spare_kernel_threads((seed % 3) as usize);
        book::run("others compute, many block", seed, modern(slots, seed), builder, |runtime| {
            let others = others(3, 3_000_000);
            many_block(runtime, 8);
            others.into_iter().for_each(|other| other.join().expect("no panic"));
        });
    }
}

#[test]
fn waiting_thread_has_not_blocked() {
    for seed in 0..SEEDS {
        let slots = 1 + seed as usize % 4;
        let machine = modern(slots + 2, seed);
        let ran = book::run("they wait for each other", seed, machine, builder(slots), |runtime| {
            let trees: Vec<_> = (0..6)
                .map(|_| {
                    runtime.spawn(|| {
                        for _ in 0..4 {
                            let me = current();
                            let child = spawn(move || {
                                stanchion_machine::work(any(SHORT));
                                me.unpark();
                            });
                            stanchion_machine::work(any(SHORT));
                            park();
                            child.join().expect("no panic");
                        }
                    })
                })
                .collect();
            trees.into_iter().for_each(|tree| tree.join().expect("no panic"));
        });
        // Each that waits has a kernel thread of its own, and gives its processor to another.
        for upcall in [Upcall::Blocked, Upcall::Unblocked, Upcall::Preempted] {
            assert_eq!(ran.metrics.upcalls(upcall), 0, "seed {seed}: {upcall:?}");
        }
    }
}

#[test]
fn assigned_slot_is_counted_once() {
    for seed in 0..SEEDS {
        let machine = modern(3, seed);
        // A new kernel thread, which is made before it is given the slot, and one that is woken.
        let late = until_woken(&machine, 1) + machine.scheduling.switch.as_nanos();
        let ran = book::run("one slot", seed, machine, builder(1), move |runtime| {
            let blocks = runtime.spawn(move || {
                for round in 0..6 {
                    stanchion_machine::work(any(9_000));
                    let nap = || thread::sleep(Duration::from_nanos(NAP + any(NAP)));
                    if (seed + round).is_multiple_of(2) {
                        blocking(nap)
                    } else {
                        nap()
                    }
                    yield_now();
                }
            });
            stock(runtime, 1_500, SHORT);
            blocks.join().expect("no panic");
        });
        let mut stays: Vec<_> = ran.stays.iter().map(|stay| (stay.from, stay.worker)).collect();
        stays.sort_unstable();
        let moves = stays.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        assert_eq!(ran.counted_of(Upcall::ProcessorAdded).count(), moves, "seed {seed}");
        for told in ran.counted_of(Upcall::ProcessorAdded) {
            assert!(told.latency <= Some(late), "seed {seed}: {told:?}, not by {late}");
        }
    }
}
