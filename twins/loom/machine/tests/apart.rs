//! What is done apart is taken for done at once, unless the model asks; what it orders is ordered.

use std::collections::BTreeSet;
use std::sync::{Arc as RealArc, Mutex};

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::sync::Arc;
use machine::wait::{Patient, WaitPolicy, retry_until};
use machine::{Model, apart, thread};
use stanchion_machine_loom as machine;

/// What one thread may see in the middle of what another does apart.
fn seen(name: &str, model: Model) -> Vec<u32> {
    let seen = RealArc::new(Mutex::new(BTreeSet::new()));
    let outcomes = RealArc::clone(&seen);
    let explored = model.check(move || {
        let word = Arc::new(AtomicU32::fresh(0));
        let other = {
            let word = word.clone();
            // Relaxed: only what is seen.
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

/// A cell that is written before an exchange that is done apart, and looked at after another.
struct Passed(AtomicU32, UnsafeCell<u32>);

// SAFETY: the word says whose the cell is; the model checks that.
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
                // SAFETY: nobody else looks before the exchange; the cell reports it if not.
                passed.1.with_mut(|cell| unsafe { *cell = 7 });
                // Release: the cell.
                apart(|| passed.0.swap(1, Ordering::Release));
            })
        };
        // Acquire: pairs with that.
        let is_there = || (apart(|| passed.0.load(Ordering::Acquire)) == 1).then_some(());
        retry_until(is_there, &mut <Patient>::start());
        // SAFETY: as above.
        passed.1.with(|cell| assert_eq!(unsafe { *cell }, 7));
        other.join().unwrap();
    });
    println!("model apart::orders: {explored}");
}
