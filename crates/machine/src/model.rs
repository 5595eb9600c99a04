//! Running a test body on every machine: once per interleaving under loom, a number of times elsewhere.

#[cfg(stanchion_loom)]
pub use crate::backend::model::{Explored, Model};
#[cfg(not(stanchion_loom))]
mod sampled;
#[cfg(not(stanchion_loom))]
pub use sampled::{Explored, Model};

/// Checks `body` with the default [`Model`]: under loom every interleaving, on the real machine a few dozen real runs, simulated a few on small
/// machines.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering::Relaxed}, sync::Arc, thread};
///
/// machine::model(|| {
///     let count = Arc::new(AtomicU32::new(0));
///     let other = { let count = count.clone(); thread::spawn(move || { count.fetch_add(1, Relaxed); }) };
///     count.fetch_add(1, Relaxed);
///     other.join().unwrap();
///     assert_eq!(count.load(Relaxed), 2);
/// });
/// # use stanchion_machine as machine;
/// ```
///
/// # Panics
///
/// When `body` does, on any run; under loom also on a data race in a [`cell`](crate::cell), on a deadlock and on a wait that never ends; simulated on
/// the latter two.
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    Model::new().check(body);
}

/// A size that only memory or time decides: `usual`, or `modelled` under loom, where a thousand elements are a thousand steps of every execution.
///
/// ```
/// /// How many nodes are collected before they are freed together.
/// const BATCH: usize = machine::sized(256, 2);
/// # assert_eq!(BATCH, 256);
/// # use stanchion_machine as machine;
/// ```
#[must_use]
pub const fn sized(usual: usize, modelled: usize) -> usize {
    if cfg!(stanchion_loom) { modelled } else { usual }
}
