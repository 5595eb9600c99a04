//! Announcing a block, where the kernel would not report it, or not soon enough.

use crate::worker::context;

/// Calls `body`, which may block the kernel thread for a while. If other threads are ready, they
/// run meanwhile.
///
/// This is not needed where [`Capabilities`](crate::Capabilities) say that the kernel reports
/// blocks: then plain code does the same, some tens of microseconds after it has blocked. Here the
/// processor slot is given away before the block. It costs a wake-up of another kernel thread if a
/// thread is ready, and else next to nothing. Outside a runtime it only calls `body`.
///
/// ```
/// use stanchion_activations::{Runtime, blocking};
///
/// let runtime = Runtime::new(1)?;
/// let (sends, receives) = std::sync::mpsc::channel();
/// let waits = runtime.spawn(move || blocking(|| receives.recv().unwrap()));
/// // On the same and only processor.
/// runtime.spawn(move || sends.send(7).unwrap());
/// assert_eq!(waits.join().unwrap(), 7);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn blocking<R>(body: impl FnOnce() -> R) -> R {
    context::with(|worker| {
        if let Some(worker) = worker {
            worker.give_slot_before_block();
        }
    });
    body()
}
