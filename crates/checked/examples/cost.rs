//! Prints the cost of recording, in nanoseconds for each acquisition with its release.
//!
//! `cargo run --release -p stanchion-checked --example cost`

use std::hint::black_box;
use std::time::Instant;

use lock_api::{Mutex, RawMutex};
use stanchion_checked::{Checked, mutex, switch_on};

/// Acquisitions of one measurement.
const ACQUISITIONS: u32 = 1_000_000;

/// Measurements of which the fastest counts: the others were disturbed.
const MEASUREMENTS: u32 = 25;

/// Pairs of locks that are taken for the first time.
const NEW: u32 = 2_000;

/// Returns the time of one acquisition, in nanoseconds.
fn measure<R: RawMutex>(lock: &Mutex<R, u64>) -> f64 {
    let once = || {
        let start = Instant::now();
        for _ in 0..ACQUISITIONS {
            *black_box(lock).lock() += 1;
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ACQUISITIONS)
    };
    (0..MEASUREMENTS).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Returns the time to take a second lock for the first time, in nanoseconds.
fn measure_new() -> f64 {
    let outer = mutex::<parking_lot::RawMutex, _>(0);
    let inner: Vec<Mutex<Checked<parking_lot::RawMutex>, u64>> =
        (0..NEW).map(|_| mutex(0)).collect();
    let _held = outer.lock();
    let start = Instant::now();
    inner.iter().for_each(|lock| *lock.lock() += 1);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(NEW)
}

fn main() {
    let plain = Mutex::<parking_lot::RawMutex, u64>::new(0);
    let checked = mutex::<parking_lot::RawMutex, u64>(0);
    let outer = mutex::<parking_lot::RawMutex, u64>(0);
    println!("parking_lot                      {:7.2} ns", measure(&plain));
    println!("checked, off                     {:7.2} ns", measure(&checked));
    switch_on();
    println!("checked, on, no other lock held  {:7.2} ns", measure(&checked));
    let held = outer.lock();
    println!("checked, on, another lock held   {:7.2} ns", measure(&checked));
    drop(held);
    println!("checked, on, a new pair          {:7.0} ns", measure_new());
}
