//! Measures the shared accesses that the simulator makes a second on this computer, for each memory
//! system.
//!
//! ```text
//! cargo run --release -p stanchion-simulator --example speed
//! ```
//!
//! Two programs: `own`, in which each thread adds to a word of its own (the run switches threads
//! for every access), and `one`, in which all add to the same word. Shared accesses are counted by
//! the simulator; a second is a second of this computer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use stanchion_simulator::inside::{self, Kind};
use stanchion_simulator::{Arena, Simulation, machines};

#[global_allocator]
static ARENA: Arena = Arena;

/// A word on two lines of its own.
#[repr(align(256))]
struct Padded(AtomicU64);

fn program(threads: usize, additions: u64, own: bool) {
    let words: Arc<[Padded]> = (0..threads).map(|_| Padded(AtomicU64::new(0))).collect();
    let made: Vec<_> = (0..threads)
        .map(|thread| {
            let words = Arc::clone(&words);
            let body = move || {
                let word = &words[if own { thread } else { 0 }].0;
                for _ in 0..additions {
                    inside::access(core::ptr::from_ref(word).cast(), Kind::Exchange);
                    word.fetch_add(1, Relaxed);
                }
            };
            inside::spawn(None, None, Box::new(body))
        })
        .collect();
    made.into_iter().for_each(inside::join);
    let sum: u64 = words.iter().map(|word| word.0.load(Relaxed)).sum();
    assert_eq!(sum, threads as u64 * additions);
}

fn main() -> Result<(), stanchion_simulator::Failure> {
    println!(
        "{:<12} {:>10} {:>8} {:>20}",
        "machine", "processors", "program", "million accesses/s"
    );
    for name in machines::NAMES {
        let machine = machines::by_name(name).expect("its own name");
        for (program_name, own) in [("own", true), ("one", false)] {
            let threads = machine.processors.min(20);
            let simulation = Simulation::new(machine.clone());
            let start = Instant::now();
            let run = simulation.run(move || program(threads, 2_000_000 / threads as u64, own))?;
            let rate = run.statistics.accesses.all as f64 / start.elapsed().as_secs_f64() / 1e6;
            println!("{name:<12} {:>10} {program_name:>8} {rate:>20.1}", machine.processors);
        }
    }
    Ok(())
}
