//! Models of a load beside a write: loom tries the load before and after every write, also where
//! the writer has loaded the word itself.
//!
//! Loom 0.7.2 by itself explores `load; store` beside a `load` once, and never lets the load see
//! the store. It compares an access with the last one alone, and that is the writer's own load. So
//! every model of a lock that reads its word before it writes it was mostly unexplored: the ticket
//! lock with two threads had 211 executions instead of 8010.

use std::collections::BTreeSet;
use std::sync::{Arc as RealArc, Mutex};

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;

/// Returns the values that one thread may load while another runs `write` on the word. Prints the
/// number of executions.
fn seen((built, make): Build, name: &str, write: fn(&AtomicU32)) -> Vec<u32> {
    let seen = RealArc::new(Mutex::new(BTreeSet::new()));
    let outcomes = RealArc::clone(&seen);
    let explored = Model::new().check(move || {
        let word = Arc::new(make());
        let writer = {
            let word = word.clone();
            thread::spawn(move || write(&word))
        };
        let value = word.load(Relaxed);
        writer.join().unwrap();
        outcomes.lock().unwrap().insert(value);
    });
    println!("model looks::{name}_{built}: {explored}");
    let seen = seen.lock().unwrap();
    seen.iter().copied().collect()
}

/// The name of a constructor, and the constructor.
type Build = (&'static str, fn() -> AtomicU32);

const BUILT: [Build; 2] = [("const", || AtomicU32::new(0)), ("fresh", || AtomicU32::fresh(0))];

#[test]
fn beside_a_store() {
    for make in BUILT {
        assert_eq!(seen(make, "beside_a_store", |word| word.store(1, Relaxed)), [0, 1]);
    }
}

#[test]
fn beside_a_load_and_a_store() {
    for make in BUILT {
        let outcomes = seen(make, "beside_a_load_and_a_store", |word| {
            let before = word.load(Relaxed);
            word.store(before + 1, Relaxed);
        });
        assert_eq!(outcomes, [0, 1]);
    }
}

#[test]
fn beside_a_load_and_an_exchange() {
    for make in BUILT {
        let outcomes = seen(make, "beside_a_load_and_an_exchange", |word| {
            let before = word.load(Relaxed);
            let _ = word.compare_exchange(before, before + 1, Relaxed, Relaxed);
        });
        assert_eq!(outcomes, [0, 1]);
    }
}

#[test]
fn beside_two_loads_and_two_stores() {
    for make in BUILT {
        let outcomes = seen(make, "beside_two_loads_and_two_stores", |word| {
            for _ in 0..2 {
                let before = word.load(Relaxed);
                word.store(before + 1, Relaxed);
            }
        });
        assert_eq!(outcomes, [0, 1, 2]);
    }
}
