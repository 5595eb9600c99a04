//! Hints to the processor and the compiler.

pub use core::hint::black_box;

/// A number that nobody chose, to start a random source from: where the caller's stack lies on the real machine, one of the run's seed under
/// simulation, always the same under loom. Mix it before use.
///
/// Different threads get different ones, mostly; one thread may get the same again.
///
/// ```
/// let seed = stanchion_machine::hint::entropy();
/// # let _ = seed;
/// ```
#[must_use]
pub fn entropy() -> u64 {
    crate::backend::entropy()
}

/// One pause of a waiting loop, of a length that [`clock::pause_ns`](crate::clock::pause_ns) measures.
///
/// Algorithms do not call this: they wait through [`wait`](crate::wait), which calls it where it makes sense.
#[inline]
pub fn spin_loop() {
    crate::backend::spin_loop();
}
