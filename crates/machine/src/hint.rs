//! Hints to the processor and the compiler.

pub use core::hint::black_box;

/// One pause of a waiting loop, of a length that [`clock::pause_ns`](crate::clock::pause_ns) measures.
///
/// Algorithms do not call this: they wait through [`wait`](crate::wait), which calls it where it makes sense.
#[inline]
pub fn spin_loop() {
    crate::backend::spin_loop();
}
