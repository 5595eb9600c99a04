//! Forks on a machine that has no `fork`.

/// Tells whether this process can be a child that continues with its parent's memory.
pub(crate) const POSSIBLE: bool = false;

#[inline]
pub(crate) fn generation() -> u32 {
    1
}
