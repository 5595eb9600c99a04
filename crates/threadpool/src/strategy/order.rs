//! The order of a ready queue.

/// The order of a ready queue: [`Fifo`] or [`Lifo`].
///
/// Sealed: in any other order the ends of a queue would not be O(1).
pub trait Order: sealed::Sealed + Send + Sync + 'static {
    /// True if the newest task comes first.
    #[doc(hidden)]
    const NEWEST_FIRST: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Fifo {}
    impl Sealed for super::Lifo {}
}

/// First in, first out: no task waits for ever, and tasks that create tasks are worked off in
/// breadth.
///
/// ```
/// use stanchion_threadpool::strategy::{Fifo, LocalFreeList, Plan, Strategy};
/// use stanchion_competitive::RawPolicyMutex;
///
/// let ready = LocalFreeList::<RawPolicyMutex, Fifo>::new(&Plan::new(2));
/// assert!(ready.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fifo;

/// Last in, first out: a new task finds its data in the cache. Tasks that create tasks are worked
/// off in depth, in little memory. The oldest may wait for ever if new ones never end.
///
/// ```
/// use stanchion_threadpool::strategy::{Lifo, LocalFreeList, Plan, Strategy};
/// use stanchion_competitive::RawPolicyMutex;
///
/// let ready = LocalFreeList::<RawPolicyMutex, Lifo>::new(&Plan::new(2));
/// assert!(ready.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lifo;

impl Order for Fifo {
    const NEWEST_FIRST: bool = false;
}

impl Order for Lifo {
    const NEWEST_FIRST: bool = true;
}
