//! Runs a test body on every machine: once for each interleaving under loom, a number of times
//! elsewhere.

#[cfg(stanchion_loom)]
pub use crate::backend::model::{Explored, Model};
#[cfg(not(stanchion_loom))]
mod sampled;
#[cfg(not(stanchion_loom))]
pub use sampled::{Explored, Model};

/// Checks `body` with the default [`Model`]. Under loom it runs every interleaving, on the real
/// machine a few dozen real runs, and simulated a few runs on small machines.
///
/// ```
/// use stanchion_machine::{atomic::{AtomicU32, Ordering::Relaxed}, sync::Arc, thread};
///
/// stanchion_machine::model(|| {
///     let count = Arc::new(AtomicU32::new(0));
///     let other = {
///         let count = count.clone();
///         thread::spawn(move || {
///             count.fetch_add(1, Relaxed);
///         })
///     };
///     count.fetch_add(1, Relaxed);
///     other.join().unwrap();
///     assert_eq!(count.load(Relaxed), 2);
/// });
/// ```
///
/// # Panics
///
/// Panics when `body` does, on any run. Under loom it also panics on a data race in a
/// [`cell`](crate::cell), on a deadlock and on a wait that never ends. Simulated it panics on the
/// latter two.
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    Model::new().check(body);
}

/// Returns a size that only memory or time limits: `usual`, or `modelled` under loom, where a
/// thousand elements are a thousand steps of every execution.
///
/// ```
/// /// The number of nodes that are collected before they are freed together.
/// const BATCH: usize = stanchion_machine::sized(256, 2);
/// # assert_eq!(BATCH, 256);
/// ```
#[must_use]
pub const fn sized(usual: usize, modelled: usize) -> usize {
    if cfg!(stanchion_loom) { modelled } else { usual }
}
