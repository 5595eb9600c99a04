//! What being watched costs a thread, and how soon the sleeper runs: the numbers in the documentation of `machine::watch`.
//!
//! ```text
//! cargo run --release -p stanchion-machine --example watch
//! ```

use stanchion_machine as machine;

use machine::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use machine::clock::{self, Deadline, Ticks};
use machine::watch::{Watch, Woken};
use machine::{park, presence, topology};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 20_000;

fn main() {
    let cpus = topology::processors();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let _pinned = topology::pin(first);
    println!("two threads by turns on one processor, a round trip (two switches of each):");
    for watched in [Watched::No, Watched::Registered, Watched::Paused] {
        println!("    {:34} {:8.0} ns", format!("{watched:?}"), by_turns(first, watched));
    }
    arming(last);
    println!("from the last look before a sleep until the sleeper in the watch runs:");
    delivery("on another processor, idle", last);
    delivery("on the same processor", first);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Watched {
    No,
    Registered,
    Paused,
}

/// The least mean time of a round trip over several goes, in ns.
fn by_turns(cpu: usize, watched: Watched) -> f64 {
    let turn = AtomicU32::new(0);
    let stop = AtomicBool::new(false);
    let index = AtomicU32::new(u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = topology::pin(cpu);
            let me = (watched != Watched::No).then(presence::register);
            let me = me.and_then(Result::ok);
            index.store(me.as_ref().map_or(0, |me| me.index() as u32), SeqCst);
            while !stop.load(SeqCst) {
                pass(&turn, 1);
            }
        });
        while index.load(SeqCst) == u32::MAX {
            std::thread::yield_now();
        }
        let watch = Watch::new();
        if watched == Watched::Paused {
            let index = index.load(SeqCst) as usize;
            if !watch.arm(index) {
                println!("    cannot be armed here: {:?}", watch.refused());
            }
            watch.disarm(index);
        }
        let go = |_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                pass(&turn, 0);
            }
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        };
        let least = (0..7).map(go).fold(f64::INFINITY, f64::min);
        stop.store(true, SeqCst);
        // Its turn once more, if it still waits for one.
        turn.store(1, SeqCst);
        park::wake_one(&turn);
        least
    })
}

/// Waits until it is the turn of `me`, of two, and passes it on.
fn pass(turn: &AtomicU32, me: u32) {
    loop {
        let now = turn.load(SeqCst);
        if now % 2 == me {
            turn.store(now + 1, SeqCst);
            park::wake_one(turn);
            return;
        }
        park::wait(turn, now, Deadline::NEVER);
    }
}

/// Prints what arming costs while the thread that is armed runs.
fn arming(cpu: usize) {
    let stop = AtomicBool::new(false);
    let index = AtomicU32::new(u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = topology::pin(cpu);
            let me = presence::register();
            index.store(me.as_ref().map_or(0, |me| me.index() as u32), SeqCst);
            while !stop.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        while index.load(SeqCst) == u32::MAX {
            std::thread::yield_now();
        }
        let index = index.load(SeqCst) as usize;
        let watch = Watch::new();
        let start = Instant::now();
        watch.arm(index);
        println!("arming a thread that runs:");
        println!("    {:34} {:8.0} ns", "the first time", start.elapsed().as_nanos());
        let cost = |what: &str, call: &mut dyn FnMut()| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                call();
            }
            let mean = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
            println!("    {what:34} {mean:8.0} ns");
        };
        cost("armed already", &mut || _ = watch.arm(index));
        cost("arm and disarm", &mut || {
            watch.disarm(index);
            watch.arm(index);
        });
        stop.store(true, SeqCst);
    });
}

/// Prints how long after a thread has gone to sleep its watcher runs.
fn delivery(what: &str, cpu: usize) {
    const SAMPLES: usize = 400;
    let (go, left, stop) = (AtomicU32::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let index = AtomicU32::new(u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = topology::pin(cpu);
            let me = presence::register();
            index.store(me.as_ref().map_or(0, |me| me.index() as u32), SeqCst);
            while !stop.load(SeqCst) {
                let now = go.load(SeqCst);
                left.store(clock::now().to_bits(), SeqCst);
                park::wait(&go, now, Deadline::NEVER);
                // Awake for long enough that the watcher sleeps again before we do.
                let end = clock::now().plus_nanos(200_000);
                while clock::now() < end {
                    std::hint::spin_loop();
                }
            }
        });
        while index.load(SeqCst) == u32::MAX {
            std::thread::yield_now();
        }
        let index = index.load(SeqCst) as usize;
        let watch = Watch::new();
        let mut late = Vec::new();
        for _ in 0..SAMPLES {
            std::thread::sleep(Duration::from_micros(500));
            let before = left.load(SeqCst);
            go.fetch_add(1, SeqCst);
            park::wake_one(&go);
            // It gets its processor, which is a switch as well.
            while presence::of(index) == presence::Presence::Blocked {
                std::thread::yield_now();
            }
            if !watch.arm(index) {
                println!("    cannot be armed here: {:?}", watch.refused());
                break;
            }
            let woken = watch.wait(Deadline::after(Duration::from_millis(50)));
            let now = clock::now();
            let slept = left.load(SeqCst);
            if woken == Woken::Switched && slept != before {
                late.push(now.nanos_since(Ticks::from_bits(slept)));
            }
        }
        stop.store(true, SeqCst);
        go.fetch_add(1, SeqCst);
        park::wake_one(&go);
        late.sort_unstable();
        if let (Some(half), Some(most)) =
            (late.get(late.len() / 2), late.get(late.len() * 99 / 100))
        {
            let micros = |nanos: &u64| *nanos as f64 / 1_000.0;
            println!("    {what:34} p50 {:5.1} us, p99 {:5.1} us", micros(half), micros(most));
        }
    });
}
