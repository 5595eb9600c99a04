//! Models of the count of a thread's handles: the holder of the last handle is the only one.
//!
//! - `handles_of_two`. Threads: two, each with a handle, read the thread and drop the handle.
//!   Failure it looks for: both free it, or neither; it is freed while the other reads.
//! - `handles_cloned_meanwhile`. Threads: the same, and one of them clones its handle first, and
//!   drops both. Failure it looks for: the same.
//! - `handles_of_three_bounded`. Threads: three. Failure it looks for: the same.
//!
//! Other models take an operation on a count for one step (`stanchion_machine::apart`). Every model
//! prints `model NAME: N executions`.

use std::sync::Arc;

use stanchion_activations_loom::__internal::ReferenceCount;
use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

/// A value with a count of handles.
struct Counted {
    /// The count that is tested.
    references: ReferenceCount,
    /// The value: 0 until it is freed. Each holder reads it, and the holder of the last handle
    /// writes it.
    payload: UnsafeCell<u32>,
    /// The number of times that the payload was freed.
    freed: AtomicU32,
}

// SAFETY: a holder of a handle reads the payload, and the holder of the last one changes it. The
// models check that.
unsafe impl Send for Counted {}
// SAFETY: as above.
unsafe impl Sync for Counted {}

impl Counted {
    fn read(&self) {
        // SAFETY: the caller has a handle; if that is not enough, the cell reports it.
        self.payload.with(|payload| assert_eq!(unsafe { *payload }, 0, "it has been freed"));
    }

    /// Reads, and drops a handle.
    fn drop_one(&self) {
        self.read();
        if self.references.decrement() {
            // SAFETY: as above.
            self.payload.with_mut(|payload| unsafe { *payload += 1 });
            // Relaxed: all that matters is that there is one; the joins of the model order it.
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Each of the bodies begins with a handle, and the first one is this thread's.
fn explore<const THREADS: usize>(name: &str, model: Model, bodies: [fn(&Counted); THREADS]) {
    let explored = model.apart().check(move || {
        let counted = Arc::new(Counted {
            references: ReferenceCount::one(),
            payload: UnsafeCell::new(0),
            freed: AtomicU32::fresh(0),
        });
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|&body| {
                counted.references.increment();
                let counted = counted.clone();
                stanchion_machine::thread::spawn(move || body(&counted))
            })
            .collect();
        bodies[0](&counted);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
        assert_eq!(counted.freed.load(Ordering::Relaxed), 1);
    });
    println!("model {name}: {explored}");
}

#[test]
fn handles_of_two() {
    explore("handles_of_two", Model::new(), [Counted::drop_one; 2]);
}

#[test]
fn handles_cloned_meanwhile() {
    let clones = |counted: &Counted| {
        counted.references.increment();
        counted.drop_one();
        counted.drop_one();
    };
    explore("handles_cloned_meanwhile", Model::new(), [Counted::drop_one, clones]);
}

#[test]
fn handles_of_three_bounded() {
    explore("handles_of_three_bounded", Model::new().preemptions(3), [Counted::drop_one; 3]);
}
