//! The priorities of threads. The queues are in `queues/prioritized.rs`, and the order in which
//! threads run is in `worker/order.rs`.

/// The urgency of a thread: see [`Builder::priority`](crate::Builder::priority).
///
/// A priority decides at scheduling points only: a thread that computes keeps its processor. Among
/// threads of one priority the order is that of [`Runtime`](crate::Runtime#order).
///
/// ```
/// use stanchion_activations::{Builder, Priority, Runtime};
///
/// let runtime = Runtime::new(1)?;
/// runtime.run(|| {
///     let log = Builder::new().priority(Priority::Low).spawn(|| "when there is time");
///     let answer = Builder::new().priority(Priority::High).spawn(|| "at once");
///     assert_eq!(answer.join().unwrap(), "at once");
///     assert_eq!(log.join().unwrap(), "when there is time");
/// });
/// assert!(Priority::Low < Priority::Normal && Priority::Normal < Priority::High);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Runs on a processor when no other thread is ready for it, also after it has blocked in the
    /// kernel. There is no bound: threads of the other priorities can keep it waiting for ever.
    Low,
    /// The priority of a thread for which no other is chosen.
    #[default]
    Normal,
    /// Runs at the next scheduling point of any processor that it can run on, before the threads of
    /// the other priorities, also when it comes back from a block in the kernel.
    High,
}

impl Priority {
    pub(crate) const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];
}
