//! Stacks of the models' threads, each of which serves many executions.
//!
//! Loom makes the threads of a model anew for each execution, and each of them maps a stack and
//! unmaps it at its end. These calls, the faults of the new pages and the interrupts of other
//! processors took more than half of the models' processor time. So this file stands before the C
//! library's `mmap`, `mprotect` and `munmap` in the models' programs: a stack that is unmapped
//! stays mapped, with its guard page, and is the next one. All other calls go to the kernel.
//!
//! Why not an option of loom's: it has none, nor has `generator`, which maps the stacks.
//!
//! # Protocol
//!
//! Each seat has the address of a stack and two flags. A thread takes a free stack by an exchange
//! (Acquire), so it sees what the thread before left there; that thread freed it by a store
//! (Release). Only the thread that has the stack changes the seat meanwhile.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The most stacks that are kept.
const SEATS: usize = 64;

/// Flag of a seat: a thread has the stack.
const TAKEN: usize = 1;

/// Flag of a seat: the stack has its guard page.
const GUARDED: usize = 2;

/// The addresses of the stacks with their flags, or 0. An address is a multiple of a page.
static STACKS: [AtomicUsize; SEATS] = [const { AtomicUsize::new(0) }; SEATS];

/// The length of the first stack in bytes. Only stacks of this length are kept.
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// The number of times that a stack was taken again.
static AGAIN: AtomicUsize = AtomicUsize::new(0);

/// Returns how often a thread of a model took a stack that another one had left.
#[must_use]
pub fn taken_again() -> usize {
    AGAIN.load(Ordering::Relaxed)
}

/// Returns a stack that was left, with its flags changed to taken.
fn take() -> Option<usize> {
    STACKS.iter().find_map(|seat| {
        let free = seat.load(Ordering::Relaxed);
        // Acquire: pairs with the Release of `munmap`.
        let is_taken = free != 0
            && free & TAKEN == 0
            && seat
                .compare_exchange(free, free | TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        is_taken.then_some(free & !GUARDED)
    })
}

/// Keeps a new stack that the caller has taken, if a seat is free.
fn keep(address: usize) {
    let _ = STACKS.iter().find(|seat| {
        let new = address | TAKEN;
        seat.load(Ordering::Relaxed) == 0
            && seat.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    });
}

/// Returns the seat of a stack that the caller has taken, and its flags.
fn seat_of(address: *mut c_void) -> Option<(&'static AtomicUsize, usize)> {
    STACKS.iter().find_map(|seat| {
        let found = seat.load(Ordering::Relaxed);
        let is_it = found & !GUARDED == address.addr() | TAKEN;
        is_it.then_some((seat, found))
    })
}

/// Makes a system call. Returns the kernel's answer, or -1 with its error in `errno`.
///
/// # Safety
///
/// That of the system call.
unsafe fn ask(number: libc::c_long, words: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = words;
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(number, a, b, c, d, e, f) as isize }
}

/// Stands before `mmap` of the C library.
///
/// # Safety
///
/// As for `mmap`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let is_stack = flags & libc::MAP_STACK != 0 && address.is_null();
    if is_stack {
        let _ = LENGTH.compare_exchange(0, length, Ordering::Relaxed, Ordering::Relaxed);
    }
    let is_kept = is_stack && length == LENGTH.load(Ordering::Relaxed);
    if is_kept && let Some(stack) = take() {
        AGAIN.fetch_add(1, Ordering::Relaxed);
        return ptr::with_exposed_provenance_mut(stack);
    }
    let words = [
        address.expose_provenance(),
        length,
        protection as usize,
        flags as usize,
        descriptor as usize,
        offset as usize,
    ];
    // SAFETY: the caller's promise.
    let mapped = unsafe { ask(libc::SYS_mmap, words) };
    if is_kept && mapped != -1 {
        keep(mapped as usize);
    }
    ptr::with_exposed_provenance_mut(mapped as usize)
}

/// Stands before `mprotect` of the C library. A stack that was taken again has its guard page.
///
/// # Safety
///
/// As for `mprotect`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int {
    let seat = if protection == libc::PROT_NONE { seat_of(address) } else { None };
    if let Some((_, flags)) = seat
        && flags & GUARDED != 0
    {
        return 0;
    }
    let words = [address.expose_provenance(), length, protection as usize, 0, 0, 0];
    // SAFETY: the caller's promise.
    let result = unsafe { ask(libc::SYS_mprotect, words) };
    if let Some((seat, flags)) = seat
        && result == 0
    {
        seat.store(flags | GUARDED, Ordering::Relaxed);
    }
    result as c_int
}

/// Stands before `munmap` of the C library. A stack stays, for the next thread.
///
/// # Safety
///
/// As for `munmap`.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    if length == LENGTH.load(Ordering::Relaxed)
        && let Some((seat, flags)) = seat_of(address)
    {
        // Release: pairs with the Acquire of `take`.
        seat.store(flags & !TAKEN, Ordering::Release);
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { ask(libc::SYS_munmap, [address.expose_provenance(), length, 0, 0, 0, 0]) as c_int }
}
