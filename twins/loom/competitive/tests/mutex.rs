//! Models of the mutex: whatever the policy says, one holder at a time and no wake-up lost.

use machine::cell::UnsafeCell;
use machine::sync::Arc;
use machine::{Model, thread};
use stanchion_competitive_loom::PolicyMutex;
use stanchion_competitive_loom::policy::{Contention, Policy};

/// Spins (one look, in a model) or blocks, by choice.
struct Either;

impl Policy for Either {
    const INIT: Self = Self;
    fn threshold(&self, _contention: &Contention) -> u64 {
        u64::from(machine::choice())
    }
}

/// What the lock protects: counted without atomics, under loom's race checker.
struct Payload(UnsafeCell<u32>);

// SAFETY: it is what a mutex is for: sent, and reached by one thread at a time. The models check that.
unsafe impl Send for Payload {}

impl Payload {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add_one(&self) {
        // SAFETY: the caller holds the lock; if that is not enough, the cell reports it.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> u32 {
        // SAFETY: as in `add_one`.
        self.0.with(|count| unsafe { *count })
    }
}

fn count_with<P: Policy + 'static>(times: &'static [u32]) {
    let mutex = Arc::new(PolicyMutex::<_, P>::new(Payload::new()));
    let (mine, others) = times.split_last().expect("at least this thread");
    let others: Vec<_> = others
        .iter()
        .map(|&times| {
            let mutex = mutex.clone();
            thread::spawn(move || (0..times).for_each(|_| mutex.lock().add_one()))
        })
        .collect();
    (0..*mine).for_each(|_| mutex.lock().add_one());
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(mutex.lock().count(), times.iter().sum());
}

#[test]
fn two_threads() {
    let explored = Model::new().check(|| count_with::<Either>(&[1, 1]));
    println!("model two_threads: {explored}");
}

#[test]
fn two_threads_bounded() {
    let explored = Model::new().preemptions(3).check(|| count_with::<Either>(&[2, 1]));
    println!("model two_threads_bounded: {explored}");
}

#[test]
fn three_threads_bounded() {
    let explored = Model::new().preemptions(2).check(|| count_with::<Either>(&[1, 1, 1]));
    println!("model three_threads_bounded: {explored}");
}
