//! A machine without `fork`.

#[inline]
pub(crate) fn generation() -> u32 {
    1
}
