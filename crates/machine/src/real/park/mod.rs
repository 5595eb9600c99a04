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

/// Half a megabyte for the mutexes' table, of which a page is touched once a mutex in it is used.
/// With 10,000 mutexes that threads sleep on, a bucket has 0.6 of them.
pub(crate) const BUCKETS: usize = 1 << 14;

#[inline]
pub(crate) fn place_of(address: *const ()) -> usize {
    address.addr()
}

#[cfg(test)]
mod tests;
