//! Declarations of a program's own costs, so that a simulated machine can charge for them:
//! computation, and shared data that is not atomic.
//!
//! Why declared: this crate cannot see the compiler's loads and stores, and most of them are a
//! thread's own. A program that is measured on the simulated machine declares how long it computes
//! and which data travels between processors. If a declaration is missing, its cost is missing from
//! the result; the result is never otherwise wrong.

use crate::backend;

/// Declares that the caller computes for `nanos` nanoseconds of the machine's time. On the real
/// machine it does nothing, because computation takes its real time there.
///
/// Put it beside real work, so that the work takes time on the simulated machine too.
///
/// ```
/// let sum: u64 = (0..1_000).sum();
/// stanchion_machine::work(250); // what that took
/// # let _ = sum;
/// ```
#[inline]
pub fn work(nanos: u64) {
    backend::data::work(nanos);
}

/// Computes for about `nanos` nanoseconds on the real machine and the simulated one, and touches
/// nothing shared. Does nothing under loom.
///
/// It stands in for work that an experiment does not have. Without the `std` feature there is no
/// clock, and it pauses a nominal number of times.
///
/// ```
/// stanchion_machine::burn(1_000);
/// ```
#[inline]
pub fn burn(nanos: u64) {
    backend::data::burn(nanos);
}

/// Declares that the caller reads `value`, which other threads write. On the simulated machine that
/// costs one read for each 8-byte word that the value lies in. It is free elsewhere.
///
/// Accesses through [`cell::UnsafeCell::with`](crate::cell::UnsafeCell::with) and the atomics need
/// no declaration.
///
/// ```
/// let table = [0_u64; 32];
/// stanchion_machine::read(&table[3]);
/// assert_eq!(table[3], 0);
/// ```
#[inline]
#[track_caller]
pub fn read<T: ?Sized>(value: &T) {
    backend::data::read(core::ptr::from_ref(value).cast(), size_of_val(value));
}

/// Declares that the caller writes `value`, which other threads read or write too; see [`read`].
///
/// ```
/// let mut table = [0_u64; 32];
/// stanchion_machine::write(&table[3]);
/// table[3] = 1;
/// # let _ = table;
/// ```
#[inline]
#[track_caller]
pub fn write<T: ?Sized>(value: &T) {
    backend::data::write(core::ptr::from_ref(value).cast(), size_of_val(value));
}

/// Gives `value` a name in the statistics of the simulated machine. The statistics then count the
/// accesses to its words by that name, and report which names share a cache line. It is free
/// elsewhere.
///
/// Parts of a value may have names of their own. Values with the same name are counted together.
///
/// ```
/// use stanchion_machine::atomic::AtomicUsize;
///
/// let tail = AtomicUsize::new(0);
/// stanchion_machine::label(&tail, "tail");
/// ```
#[inline]
pub fn label<T: ?Sized>(value: &T, name: &str) {
    backend::data::label(core::ptr::from_ref(value).cast(), size_of_val(value), name);
}
