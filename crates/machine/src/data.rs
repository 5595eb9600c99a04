//! What a program declares of itself, so that a simulated machine can charge for it: computation, and shared data that is not atomic.
//!
//! Why declared: the compiler's loads and stores cannot be seen from here, and most of them are a thread's own. Who measures a program on the
//! simulated machine says where its time goes, and which data travels between processors; a forgotten declaration is a cost that is missing there,
//! never a wrong result.

use crate::backend;

/// The caller computes for so many nanoseconds of the machine's time: nothing on the real machine, where it takes what it takes.
///
/// Beside real work, so that it takes time on the simulated machine too.
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

/// Computes for about so many nanoseconds on the real machine and the simulated one, touching nothing shared; nothing under loom.
///
/// A stand-in for work that an experiment does not have. Without the `std` feature there is no clock, and it pauses a nominal number of times.
///
/// ```
/// stanchion_machine::burn(1_000);
/// ```
#[inline]
pub fn burn(nanos: u64) {
    backend::data::burn(nanos);
}

/// Declares that the caller reads `value` where others write: on the simulated machine one read for each 8-byte word that it lies in, free elsewhere.
///
/// What [`cell::UnsafeCell::with`](crate::cell::UnsafeCell::with) and the atomics do needs no declaration.
///
/// ```
/// let table = [0_u64; 32];
/// stanchion_machine::read(&table[3]);
/// assert_eq!(table[3], 0);
/// ```
#[inline]
pub fn read<T: ?Sized>(value: &T) {
    backend::data::read(core::ptr::from_ref(value).cast(), size_of_val(value));
}

/// Declares that the caller writes `value`, which others read or write too; see [`read`].
///
/// ```
/// let mut table = [0_u64; 32];
/// stanchion_machine::write(&table[3]);
/// table[3] = 1;
/// # let _ = table;
/// ```
#[inline]
pub fn write<T: ?Sized>(value: &T) {
    backend::data::write(core::ptr::from_ref(value).cast(), size_of_val(value));
}

/// Gives `value` a name in the statistics of the simulated machine, which then count by name what is asked of its words, and say which names share a
/// cache line; free elsewhere.
///
/// Parts of a value may have names of their own; what has the same name is counted together.
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
