//! The processors of the tracer and of the threads of its child.
//!
//! The tracer and the victim wait for each other at each step. On one processor the kernel changes
//! from one to the other at once. On two, one of them sleeps each time and is woken by an
//! interrupt, which takes three times as long. The other threads may run anywhere.

use core::mem;
use std::io;

/// A set of processors.
#[derive(Clone, Copy)]
pub(crate) struct Processors(libc::cpu_set_t);

/// The processors of the parts of the test.
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

    /// Lets the calling thread run on these only.
    pub(crate) fn bind(&self) -> io::Result<()> {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: reads the set.
        match unsafe { libc::sched_setaffinity(0, size, &raw const self.0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Shared {
    /// Returns the processors of this thread, and the `index`-th of them in turn.
    pub(crate) fn of(index: usize) -> io::Result<Self> {
        let mut all = Processors::none();
        // SAFETY: writes to the set.
        if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut all.0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: within the set.
        let is_usable = |&at: &usize| unsafe { libc::CPU_ISSET(at, &all.0) };
        let usable: Vec<_> = (0..libc::CPU_SETSIZE as usize).filter(is_usable).collect();
        let mut one = Processors::none();
        // SAFETY: within the set.
        unsafe { libc::CPU_SET(usable[index % usable.len()], &mut one.0) };
        Ok(Self { all, one })
    }
}
