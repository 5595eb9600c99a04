//! Hints to the processor and the compiler.

pub use core::hint::black_box;

/// Returns an arbitrary number, to seed a source of random numbers. On the real machine it is the
/// address of the caller's stack. Under simulation it derives from the run's seed. Under loom it is
/// always the same. Mix it before use.
///
/// Different threads mostly get different numbers. One thread may get the same number again.
///
/// ```
/// let seed = stanchion_machine::hint::entropy();
/// # let _ = seed;
/// ```
#[must_use]
pub fn entropy() -> u64 {
    crate::backend::entropy()
}

/// Pauses once in a waiting loop, for a length that [`clock::pause_ns`](crate::clock::pause_ns)
/// measures.
///
/// Algorithms do not call this. They wait through [`wait`](crate::wait), which calls it where that
/// is useful.
#[inline]
pub fn spin_loop() {
    crate::backend::spin_loop();
}
