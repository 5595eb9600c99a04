//! Sleeping on a word, by futex or by hand; one test suite for both.

#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod futex;
#[cfg(any(
    test,
    not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))
))]
mod portable;

#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
pub(crate) use futex::{wait, wake};
#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    target_pointer_width = "64"
)))]
pub(crate) use portable::{wait, wake};

/// 64 KiB of untouched memory; with a hundred locks in use, about one in ten shares its bucket with another.
pub(crate) const BUCKETS: usize = 1024;

#[inline]
pub(crate) fn place_of(address: *const ()) -> usize {
    address.addr()
}

#[cfg(test)]
mod tests;
