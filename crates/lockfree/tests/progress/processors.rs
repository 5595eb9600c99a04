//! The processors of the tracer and of the threads of its child.
//!
//! The tracer and the victim wait for each other at each step. On one processor the kernel changes
//! from one to the other at once. On two, each sleeps in turn and is woken by an interrupt, which
//! takes most of the test's time. The other threads may run anywhere. Where threads cannot be
//! bound, the test only takes longer.

use core::mem;

/// A set of processors.
#[derive(Clone, Copy)]
pub(crate) struct Processors(libc::cpu_set_t);

/// The processors of a part of the test.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    /// Those that this process may use.
    pub(crate) all: Processors,
    /// The one of the tracer and the victim.
    pub(crate) one: Processors,
}

impl Processors {
    /// Returns an empty set.
    fn none() -> Self {
        // SAFETY: plain bits, for which zeros are a value.
        Self(unsafe { mem::zeroed() })
    }

    /// Lets the calling thread run on these only, if the system allows it.
    pub(crate) fn bind(&self) {
        // SAFETY: reads the set.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) };
    }
}

impl Shared {
    /// Returns the processors of this thread, and the `index`-th of them in turn. The sets are
    /// empty if the system does not tell.
    pub(crate) fn of(index: usize) -> Self {
        let mut all = Processors::none();
        // SAFETY: writes to the set. If that fails, the set stays empty.
        unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut all.0) };
        // SAFETY: within the set.
        let is_usable = |&at: &usize| unsafe { libc::CPU_ISSET(at, &all.0) };
        let usable: Vec<_> = (0..libc::CPU_SETSIZE as usize).filter(is_usable).collect();
        let mut one = Processors::none();
        if let Some(&at) = usable.get(index % usable.len().max(1)) {
            // SAFETY: within the set.
            unsafe { libc::CPU_SET(at, &mut one.0) };
        }
        Self { all, one }
    }
}
