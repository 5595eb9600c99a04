//! Permits for calls that must not be made once something is installed.
//!
//! A thread counts itself, then looks at `installed`. A thread that installs something writes
//! `installed`, then looks at the counts. Both pass a SeqCst fence in between, so one of them sees
//! the other: the first has no permit, or the second waits until it has given the permit back.

use stanchion_machine::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A count of permits in the lower half, on a cache line of its own. The upper half has the
/// generation of the process: a child of a fork has none of its parent's permits.
#[repr(align(64))]
struct Count(AtomicU64);

/// The permits of a process's threads, and whether something is installed in it.
pub(super) struct Permits<const COUNTS: usize> {
    /// The number of things that were installed, or are about to be. Threads that install them
    /// write it.
    installed: AtomicU32,
    /// The permits. Each thread counts in one of them.
    counts: [Count; COUNTS],
}

/// The right to make such a call.
pub(super) struct Permit<'counts> {
    /// The count that has it.
    count: &'counts Count,
    /// The generation of the process that counted it.
    generation: u32,
}

impl<const COUNTS: usize> Permits<COUNTS> {
    pub(super) const fn new() -> Self {
        let counts = [const { Count(AtomicU64::new(0)) }; COUNTS];
        Self { installed: AtomicU32::new(0), counts }
    }

    /// Returns whether something is installed, or about to be.
    #[inline]
    pub(super) fn is_installed(&self) -> bool {
        // Relaxed: the thread that has installed it sees it, and others ask for a permit.
        self.installed.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a thread of that generation has a permit.
    pub(super) fn is_used(&self, generation: u32) -> bool {
        self.counts.iter().any(|count| count.is_used(generation))
    }

    /// Returns a permit that is counted at `index`, unless something is installed.
    #[inline]
    pub(super) fn permit(&self, index: usize, generation: u32) -> Option<Permit<'_>> {
        let count = &self.counts[index % COUNTS];
        count.add(generation);
        let permit = Permit { count, generation };
        // SeqCst: pairs with the fence of `install`.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it.
        (!self.is_installed()).then_some(permit)
    }

    /// Installs something by `call`, which returns false if that is refused.
    ///
    /// While threads have permits it calls `wait`, and goes on if that returns false. The argument
    /// of `wait` is true if nothing is installed yet.
    pub(super) fn install(
        &self,
        generation: u32,
        mut wait: impl FnMut(bool) -> bool,
        call: impl FnOnce() -> bool,
    ) -> bool {
        // Relaxed: the fence orders it.
        let is_first = self.installed.fetch_add(1, Ordering::Relaxed) == 0;
        // SeqCst: pairs with the fence of `permit`.
        fence(Ordering::SeqCst);
        while self.is_used(generation) && wait(is_first) {}
        let is_there = call();
        if !is_there {
            // Relaxed: a refused call leaves nothing that a permit has to see.
            self.installed.fetch_sub(1, Ordering::Relaxed);
        }
        is_there
    }
}

impl Count {
    /// Counts a permit.
    #[inline]
    fn add(&self, generation: u32) {
        let none = u64::from(generation) << 32;
        let more = |bits| Some((if is_of(bits, generation) { bits } else { none }) + 1);
        // Relaxed: the fence of `permit` orders it. It always succeeds.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Ends a permit, unless a child of that generation counts here.
    #[inline]
    fn remove(&self, generation: u32) {
        let less = |bits: u64| (is_of(bits, generation) && bits as u32 > 0).then(|| bits - 1);
        // Release: pairs with the Acquire of `is_used`. The call is over.
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, less);
    }

    /// Returns whether a thread of that generation has a permit.
    fn is_used(&self, generation: u32) -> bool {
        // Acquire: pairs with the Release of `remove`.
        let bits = self.0.load(Ordering::Acquire);
        is_of(bits, generation) && bits as u32 > 0
    }
}

/// Returns whether a count is of that generation.
#[inline]
const fn is_of(bits: u64, generation: u32) -> bool {
    (bits >> 32) as u32 == generation
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.count.remove(self.generation);
    }
}
