//! Models of the count of a thread's handles: who has the last one is alone.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `handles_of_two` | two, each with a handle, look at what it is of and drop it | both free it, or neither; it is freed while the other looks |
//! | `handles_shared_meanwhile` | the same, and one of them shares its handle first, and drops both | the same |
//! | `handles_of_three_bounded` | three | the same |
//!
//! Other models take what is done to a count for done at once (`machine::apart`). Every model prints `model NAME: N executions`.

#[path = "../../../../crates/activations/src/shares.rs"]
#[allow(unreachable_pub)]
mod shares;

use std::sync::Arc;

use machine::Model;
use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;

use shares::Shares;

/// What there are handles of.
struct Thing {
    shares: Shares,
    payload: UnsafeCell<u32>,
    freed: AtomicU32,
}

// SAFETY: the payload is looked at by who has a handle, and changed by who had the last one. The models check that.
unsafe impl Send for Thing {}
// SAFETY: as above.
unsafe impl Sync for Thing {}

impl Thing {
    fn look(&self) {
        // SAFETY: the caller has a handle; if that is not enough, the cell reports it.
        self.payload.with(|payload| assert_eq!(unsafe { *payload }, 0, "it has been freed"));
    }

    /// Looks, and drops a handle.
    fn drop_one(&self) {
        self.look();
        if self.shares.less() {
            // SAFETY: as above.
            self.payload.with_mut(|payload| unsafe { *payload += 1 });
            // Relaxed: only that there is one; the joins of the model order it.
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Each of these has a handle to begin with, and the first is this thread.
fn explore<const THREADS: usize>(name: &str, model: Model, bodies: [fn(&Thing); THREADS]) {
    let explored = model.apart().check(move || {
        let thing = Arc::new(Thing {
            shares: Shares::one(),
            payload: UnsafeCell::new(0),
            freed: AtomicU32::fresh(0),
        });
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|&body| {
                thing.shares.more();
                let thing = thing.clone();
                machine::thread::spawn(move || body(&thing))
            })
            .collect();
        bodies[0](&thing);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
        assert_eq!(thing.freed.load(Ordering::Relaxed), 1);
    });
    println!("model {name}: {explored}");
}

#[test]
fn handles_of_two() {
    explore("handles_of_two", Model::new(), [Thing::drop_one; 2]);
}

#[test]
fn handles_shared_meanwhile() {
    let shares = |thing: &Thing| {
        thing.shares.more();
        thing.drop_one();
        thing.drop_one();
    };
    explore("handles_shared_meanwhile", Model::new(), [Thing::drop_one, shares]);
}

#[test]
fn handles_of_three_bounded() {
    explore("handles_of_three_bounded", Model::new().preemptions(3), [Thing::drop_one; 3]);
}
