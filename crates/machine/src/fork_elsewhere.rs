//! A machine without `fork`.

/// Whether this process can be a child that goes on with its parent's memory.
pub(crate) const POSSIBLE: bool = false;

#[inline]
pub(crate) fn generation() -> u32 {
    1
}
