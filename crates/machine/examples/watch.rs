//! Prints what being watched costs a thread, and how soon the sleeper runs: the numbers in the
//! documentation of `stanchion_machine::presence::watch`.
//!
//! ```text
//! cargo run --release -p stanchion-machine --example watch
//! ```

use stanchion_machine::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::presence::watch::{Watch, Woken};
use stanchion_machine::{park, presence, topology};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 20_000;

/// The number of runs of a measurement. The best one counts, because a disturbance only lengthens a
/// run.
const GOES: u32 = 7;

fn main() {
    let cpus = topology::processors();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let _pinned = topology::pin(first);
    for threads in [2, 32] {
        println!("a switch, {threads} threads in turn on one processor:");
        for watched in [Watched::No, Watched::Registered, Watched::Paused] {
            let name = format!("{watched:?}");
            println!("    {name:34} {:8.0} ns", in_turn(first, threads, watched));
        }
    }
    arming(last);
    println!("from the last look before a sleep until the sleeper in the watch runs:");
    delivery("on another processor, idle", last);
    delivery("on the same processor", first);
}

/// The kind of records that each of the threads has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Watched {
    No,
    Registered,
    /// Registered, and armed once: the ring of the watch is paused.
    Paused,
}

/// Runs `threads` threads on one processor, each of which wakes the next and sleeps. Returns the
/// least mean time of a switch over several runs, in ns.
fn in_turn(cpu: usize, threads: usize, watched: Watched) -> f64 {
    let words: Vec<_> = (0..threads).map(|_| AtomicU32::new(0)).collect();
    let (words, laps) = (&words[..], ROUNDS / threads as u32);
    let (watch, begin) = (&Watch::new(), &Barrier::new(threads));
    std::thread::scope(|scope| {
        let enter = move || {
            let _pinned = topology::pin(cpu);
            let registered = (watched != Watched::No).then(presence::register).and_then(Result::ok);
            if let (Watched::Paused, Some(registered)) = (watched, &registered) {
                if !watch.arm(registered.index()) {
                    println!("    cannot be armed here: {:?}", watch.refused());
                }
                watch.disarm(registered.index());
            }
            begin.wait();
            registered
        };
        for me in 1..threads {
            scope.spawn(move || {
                let _registered = enter();
                for _ in 0..GOES * laps {
                    await_turn(&words[me]);
                    wake(&words[(me + 1) % threads]);
                }
            });
        }
        let first = scope.spawn(move || {
            let _registered = enter();
            let go = |_| {
                let start = Instant::now();
                for _ in 0..laps {
                    wake(&words[1]);
                    await_turn(&words[0]);
                }
                start.elapsed().as_nanos() as f64 / f64::from(laps) / threads as f64
            };
            (0..GOES).map(go).fold(f64::INFINITY, f64::min)
        });
        first.join().expect("it only measures")
    })
}

fn wake(word: &AtomicU32) {
    word.store(1, SeqCst);
    park::wake_one(word);
}

fn await_turn(word: &AtomicU32) {
    while word.load(SeqCst) == 0 {
        park::wait(word, 0, Deadline::NEVER);
    }
    word.store(0, SeqCst);
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

/// Prints how long after a thread has gone to sleep the thread that watches it runs.
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
                // Stay awake for long enough that the watching thread sleeps again before this one
                // does.
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
        'samples: for _ in 0..SAMPLES {
            std::thread::sleep(Duration::from_micros(500));
            let before = left.load(SeqCst);
            go.fetch_add(1, SeqCst);
            park::wake_one(&go);
            // The thread gets its processor, which is a switch as well.
            while presence::of(index) == presence::Presence::Blocked {
                if left.load(SeqCst) != before {
                    // On this processor the thread ran first, and sleeps again.
                    continue 'samples;
                }
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
        let (Some(half), Some(most)) = (late.get(late.len() / 2), late.get(late.len() * 99 / 100))
        else {
            return println!("    {what:34} never: it slept again before the watch could be armed");
        };
        let micros = |nanos: &u64| *nanos as f64 / 1_000.0;
        println!("    {what:34} p50 {:5.1} us, p99 {:5.1} us", micros(half), micros(most));
    });
}
