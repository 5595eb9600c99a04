//! The units of waiting, as one thread can measure them.
//!
//! - A transfer. A thread flushes a line of its own to memory and reads it again: two trips beyond
//!   its own caches, of which a transfer from another processor takes one. So a transfer is taken
//!   to last half as long. Why not two threads that pass a line to and fro: a library starts no
//!   thread that was not asked for. Why not the waits of the program: a reading of the clock before
//!   and after each look takes as long as the look.
//! - A call. A thread wakes a word on which no thread sleeps. Elsewhere than on Linux that is no
//!   call.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::wait::{NOMINAL_CALL_NS, NOMINAL_TRANSFER_NS};

/// The limits of a transfer, in nanoseconds. Emulators do not flush. Linux runs the instruction for
/// the program on some faulty processors.
const TRANSFER_NS: [u64; 2] = [20, 500];

/// The limits of a call, in nanoseconds.
const CALL_NS: [u64; 2] = [20, 2_000];

/// A time that is measured at its first use.
struct Unit {
    /// Nanoseconds. 0 while unknown. Relaxed: each thread that measures gets much the same.
    known: AtomicU32,
    /// Its limits.
    limits: [u64; 2],
    /// The time where it cannot be measured.
    nominal: u64,
    /// Measures it, if that can be.
    measure: fn() -> Option<u64>,
}

static TRANSFER: Unit = Unit::new(TRANSFER_NS, NOMINAL_TRANSFER_NS, transfer);
static CALL: Unit = Unit::new(CALL_NS, NOMINAL_CALL_NS, call);

impl Unit {
    const fn new(limits: [u64; 2], nominal: u64, measure: fn() -> Option<u64>) -> Self {
        Self { known: AtomicU32::new(0), limits, nominal, measure }
    }

    #[inline]
    fn nanos(&self) -> u64 {
        match self.known.load(Relaxed) {
            0 => self.learn(),
            nanos => nanos.into(),
        }
    }

    #[cold]
    fn learn(&self) -> u64 {
        let measured = (self.measure)().unwrap_or(self.nominal);
        let nanos = measured.clamp(self.limits[0], self.limits[1]);
        // The first thread to measure decides: a unit does not change under its users.
        match self.known.compare_exchange(0, nanos as u32, Relaxed, Relaxed) {
            Ok(_) => nanos,
            Err(first) => first.into(),
        }
    }
}

/// Returns the time of a transfer in nanoseconds.
#[inline]
pub(crate) fn transfer_nanos() -> u64 {
    TRANSFER.nanos()
}

/// Returns the time of a call in nanoseconds.
#[inline]
pub(crate) fn call_nanos() -> u64 {
    CALL.nanos()
}

/// Returns the shortest time of a wake-up without a sleeper. `None` if there is no clock, or a
/// wake-up is no call to the kernel.
#[cfg(all(feature = "std", any(target_os = "linux", target_os = "android"), not(miri)))]
fn call() -> Option<u64> {
    use crate::clock;

    const WINDOWS: usize = 4;
    const CALLS: u64 = 4;

    let word = crate::atomic::AtomicU32::new(0);
    let window = || {
        let began = clock::now();
        for _ in 0..CALLS {
            crate::park::wake_all(&word);
        }
        clock::now().nanos_since(began)
    };
    let shortest = (0..WINDOWS).map(|_| window()).min()?;
    Some(shortest / CALLS)
}

#[cfg(not(all(feature = "std", any(target_os = "linux", target_os = "android"), not(miri))))]
fn call() -> Option<u64> {
    None
}

/// Returns half of the shortest time in which a line was flushed and read again. `None` if there is
/// no clock or no such instruction.
#[cfg(all(
    feature = "std",
    not(miri),
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_os = "linux"))
))]
fn transfer() -> Option<u64> {
    use crate::clock;

    const WINDOWS: usize = 6;
    const TRIPS: u64 = 4;

    let line = crossbeam_utils::CachePadded::new(AtomicU32::new(0));
    let window = || {
        let began = clock::now();
        for _ in 0..TRIPS {
            flush(&line);
            core::hint::black_box(line.load(Relaxed));
            finish_accesses();
        }
        clock::now().nanos_since(began)
    };
    let shortest = (0..WINDOWS).map(|_| window()).min()?;
    Some(shortest / (2 * TRIPS))
}

#[cfg(not(all(
    feature = "std",
    not(miri),
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_os = "linux"))
)))]
fn transfer() -> Option<u64> {
    None
}

/// Writes the word's line to memory and drops it from all caches.
#[cfg(all(feature = "std", target_arch = "x86_64", not(miri)))]
fn flush(word: &AtomicU32) {
    // SAFETY: each x86-64 processor has the instruction. It changes no memory.
    unsafe { core::arch::x86_64::_mm_clflush(word.as_ptr().cast()) };
    finish_accesses();
}

/// Ends the accesses so far before those that follow.
#[cfg(all(feature = "std", target_arch = "x86_64", not(miri)))]
fn finish_accesses() {
    // SAFETY: each x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_mm_mfence() };
}

/// Writes the word's line to memory and drops it from all caches.
#[cfg(all(feature = "std", target_arch = "aarch64", target_os = "linux", not(miri)))]
fn flush(word: &AtomicU32) {
    // SAFETY: Linux lets user code run the instruction, or runs it for the program. It writes
    // the line back before it drops it, and the word is alive.
    unsafe {
        core::arch::asm!("dc civac, {}", "dsb ish", in(reg) word.as_ptr(), options(nostack, preserves_flags));
    }
}

/// Ends the accesses so far before those that follow.
#[cfg(all(feature = "std", target_arch = "aarch64", target_os = "linux", not(miri)))]
fn finish_accesses() {
    // SAFETY: a barrier changes no memory.
    unsafe { core::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_measured_once_and_within_their_limits() {
        for unit in [&TRANSFER, &CALL] {
            let nanos = unit.nanos();
            assert!((unit.limits[0]..=unit.limits[1]).contains(&nanos), "{nanos}");
            assert_eq!(nanos, unit.nanos());
        }
    }

    #[test]
    fn what_cannot_be_measured_is_nominal_and_nonsense_is_limited() {
        for (measure, nanos) in
            [((|| None) as fn() -> _, 100), (|| Some(0), 20), (|| Some(u64::MAX), 500)]
        {
            assert_eq!(Unit::new([20, 500], 100, measure).nanos(), nanos);
        }
    }
}
