//! Prints what the patch costs, in nanoseconds for each acquisition with its release. The raw lock
//! is what a program without the patch calls.
//!
//! `cargo run --release --manifest-path examples/guarded_map/Cargo.toml --example cost`

use std::hint::black_box;
use std::time::Instant;

use lock_api_04::RawMutex;
use parking_lot_012::Mutex;

/// Acquisitions of one measurement.
const ACQUISITIONS: u32 = 1_000_000;

/// Measurements of which the fastest counts: the others were disturbed.
const MEASUREMENTS: u32 = 25;

/// Returns the time of one act, in nanoseconds.
fn measure(act: impl Fn()) -> f64 {
    let once = || {
        let start = Instant::now();
        (0..ACQUISITIONS).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ACQUISITIONS)
    };
    (0..MEASUREMENTS).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let raw = parking_lot_012::RawMutex::INIT;
    let (mutex, outer) = (Mutex::new(0_u64), Mutex::new(()));
    let plain = || {
        black_box(&raw).lock();
        // SAFETY: it was taken above.
        unsafe { black_box(&raw).unlock() };
    };
    let patched = || drop(black_box(&mutex).lock());
    println!("the raw lock                     {:7.2} ns", measure(plain));
    println!("patched, off                     {:7.2} ns", measure(patched));
    stanchion_order::switch_on();
    println!("patched, on, no other lock held  {:7.2} ns", measure(patched));
    let _held = outer.lock();
    println!("patched, on, another lock held   {:7.2} ns", measure(patched));
    let new: Vec<Mutex<()>> = (0..2_000).map(|_| Mutex::new(())).collect();
    let start = Instant::now();
    new.iter().for_each(|lock| drop(lock.lock()));
    let each = start.elapsed().as_secs_f64() * 1e9 / new.len() as f64;
    println!("patched, on, a new pair          {each:7.0} ns");
}
