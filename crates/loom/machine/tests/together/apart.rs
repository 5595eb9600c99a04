//! Models of `apart`: its body runs in one step unless the model explores it. What the body orders
//! is ordered in either case.

use std::collections::BTreeSet;
use std::sync::{Arc as RealArc, Mutex};

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until};
use stanchion_machine::{Model, apart, thread};
use stanchion_machine_loom as stanchion_machine;

/// Returns the values that one thread may see while another is in the middle of an `apart` body.
fn seen(name: &str, model: Model) -> Vec<u32> {
    let seen = RealArc::new(Mutex::new(BTreeSet::new()));
    let outcomes = RealArc::clone(&seen);
    let explored = model.check(move || {
        let word = Arc::new(AtomicU32::fresh(0));
        let other = {
            let word = word.clone();
            // Relaxed: the model compares values, and publishes nothing.
            let add = move || word.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || apart(|| add() + add()))
        };
        let value = apart(|| word.fetch_add(0, Ordering::Relaxed));
        other.join().unwrap();
        outcomes.lock().unwrap().insert(value);
    });
    println!("model apart::{name}: {explored}");
    let seen = seen.lock().unwrap();
    seen.iter().copied().collect()
}

#[test]
fn is_explored_if_the_model_asks() {
    assert_eq!(seen("is_explored_if_the_model_asks", Model::new().apart()), [0, 1, 2]);
    assert_eq!(seen("is_done_at_once", Model::new()).len(), 1);
}

/// A cell that one thread writes before an exchange in `apart`. Another thread reads it after a
/// load in `apart`.
struct Passed(AtomicU32, UnsafeCell<u32>);

// SAFETY: the word says which thread may use the cell. The model checks that.
unsafe impl Send for Passed {}
// SAFETY: as above.
unsafe impl Sync for Passed {}

#[test]
fn orders() {
    let explored = Model::new().check(|| {
        let passed = Arc::new(Passed(AtomicU32::fresh(0), UnsafeCell::new(0)));
        let other = {
            let passed = passed.clone();
            thread::spawn(move || {
                // SAFETY: no other thread reads before the exchange. If one did, the cell would
                // report it.
                passed.1.with_mut(|cell| unsafe { *cell = 7 });
                // Release: publishes the write to the cell. Pairs with the Acquire load below.
                apart(|| passed.0.swap(1, Ordering::Release));
            })
        };
        // Acquire: makes the write to the cell visible. Pairs with the Release exchange above.
        let is_there = || (apart(|| passed.0.load(Ordering::Acquire)) == 1).then_some(());
        retry_until(is_there, &mut <Patient>::start());
        // SAFETY: the load saw the exchange, and the writer does not use the cell after it.
        passed.1.with(|cell| assert_eq!(unsafe { *cell }, 7));
        other.join().unwrap();
    });
    println!("model apart::orders: {explored}");
}
