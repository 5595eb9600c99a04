//! The kernel's slice extension (Linux 7.0): two bytes of the thread's `rseq` area.
//!
//! | byte | written by the thread | by the kernel |
//! | --- | --- | --- |
//! | `request` | 1 before the section, 0 after it | 0 when it grants the extension |
//! | `granted` | never | 1 when it grants it, 0 when it takes it back |
//!
//! A thread that finds `granted` after its section gives the processor up by `rseq_slice_yield`;
//! any other system call in an extension does so too, on entry. The area belongs to the C library,
//! which must have registered more than its first 32 bytes (glibc 2.41).
//!
//! This was written without a kernel that has it: the steps are tested on bytes in memory, and if
//! the call that switches it on is refused the first time, it is not repeated.
//!
//! # Invariants
//!
//! 1. `CONTROL` is null or points to the two bytes in the calling thread's own `rseq` area, which
//!    is there for as long as the thread.
//!
//! Source: Linux, `Documentation/userspace-api/rseq.rst`.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU8, Ordering, compiler_fence};

/// The two bytes, as both sides see them.
#[repr(C)]
struct Control {
    /// Written by the thread: 1 before the section, 0 after it.
    request: AtomicU8,
    /// Written by the kernel: 1 when it grants an extension.
    granted: AtomicU8,
}

/// Says whether the kernel has it: not known yet, no, yes.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

std::thread_local! {
    static CONTROL: Cell<*const Control> = const { Cell::new(ptr::null()) };
    /// True once this thread has tried to switch it on.
    static TRIED: Cell<bool> = const { Cell::new(false) };
}

/// `false` where it is known that there is none: the usual case, and one load of a word that does
/// not change.
#[inline]
pub(super) fn may_be_there() -> bool {
    // Relaxed: everyone finds out alike.
    STATE.load(Ordering::Relaxed) != ABSENT
}

/// Returns whether it is switched on for the calling thread. The first call switches it on.
pub(super) fn is_there() -> bool {
    may_be_there() && control().is_some()
}

pub(super) fn request() {
    if let Some(control) = control() {
        ask(control);
    }
}

/// Gives the processor up if the thread had an extension. Returns whether it had.
pub(super) fn take_back() -> bool {
    control().is_some_and(|control| {
        thank(control, || {
            /// `rseq_slice_yield`, Linux 7.0.
            const RSEQ_SLICE_YIELD: libc::c_long = 471;
            // A kernel without it would leave an error where a lock is released. There the caller
            // may be between a call of its own and its look at `errno`.
            crate::backend::errno::keeping_errno(|| {
                // SAFETY: takes nothing; it may give the processor to another thread. The result
                // says whether there was an extension left, and is not needed.
                unsafe { libc::syscall(RSEQ_SLICE_YIELD) };
            });
        })
    })
}

/// The calling thread's bytes, if the kernel heeds them.
fn control() -> Option<&'static Control> {
    if !TRIED.replace(true) {
        CONTROL.set(switch_on().unwrap_or(ptr::null()));
    }
    // SAFETY: Invariant 1; the reference is used by this thread only, and at once.
    unsafe { CONTROL.get().as_ref() }
}

fn switch_on() -> Option<*const Control> {
    /// `PR_RSEQ_SLICE_EXTENSION`, its `SET`, and what it sets.
    const SLICE_EXTENSION: libc::c_int = 79;
    const SET: libc::c_ulong = 2;
    const ENABLE: libc::c_ulong = 1;
    const NOTHING: libc::c_ulong = 0;
    // Asked first, because it is a number that the process was started with. Looking up the C
    // library's names takes the loader's lock, and may allocate if there are none.
    let area = if kernel_reaches(auxiliary(FEATURE_SIZE)) && library_reaches(registered()) {
        area()
    } else {
        None
    };
    let on = area.filter(|_| {
        // SAFETY: no argument is a pointer; it changes how this thread is scheduled when it asks
        // for it.
        unsafe { libc::prctl(SLICE_EXTENSION, SET, ENABLE, NOTHING, NOTHING) == 0 }
    });
    // Relaxed: what threads know of it is in their own areas. One that has been refused says so
    // only if no other has got it: that one may have a request open, which it must come back for.
    if on.is_some() {
        STATE.store(PRESENT, Ordering::Relaxed);
    } else {
        let _ = STATE.compare_exchange(UNKNOWN, ABSENT, Ordering::Relaxed, Ordering::Relaxed);
    }
    on
}

/// Where the two bytes are in the area.
const OFFSET: usize = 28;

/// `AT_RSEQ_FEATURE_SIZE`, Linux 6.3.
const FEATURE_SIZE: libc::c_ulong = 27;

fn auxiliary(name: libc::c_ulong) -> libc::c_ulong {
    // SAFETY: a look-up that answers 0 for what it does not know.
    unsafe { libc::getauxval(name) }
}

/// Returns whether the kernel heeds the two bytes, given the size of the area that it knows.
fn kernel_reaches(size: libc::c_ulong) -> bool {
    size > 32
}

/// Returns the bytes that the C library has registered for each thread: 0 if it has not.
fn registered() -> u32 {
    // SAFETY: looks a name up among the loaded libraries; the name ends with a zero.
    let registered = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    if registered.is_null() {
        return 0;
    }
    // SAFETY: glibc defines the name as an `unsigned int` that does not change after start-up.
    unsafe { registered.cast::<u32>().read() }
}

/// Returns whether the area that the C library has registered has the two bytes: the kernel heeds
/// them only in areas of more than 32 bytes.
fn library_reaches(registered: u32) -> bool {
    registered > 32
}

/// The bytes of the calling thread's area.
fn area() -> Option<*const Control> {
    // SAFETY: looks a name up among the loaded libraries; the name ends with a zero.
    let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
    if offset.is_null() {
        return None;
    }
    // SAFETY: glibc defines the name as a `ptrdiff_t` that does not change after start-up.
    let offset = unsafe { offset.cast::<isize>().read() };
    Some(thread_pointer().wrapping_offset(offset).wrapping_add(OFFSET).cast())
}

/// Returns the address from which the offset counts.
fn thread_pointer() -> *const u8 {
    let pointer: *const u8;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the word that the ABI keeps there: its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register that user code may read.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

fn ask(control: &Control) {
    // Relaxed, here and below: the kernel looks when it has interrupted this very thread.
    control.request.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
}

/// Takes the request back; gives way if it was granted.
fn thank(control: &Control, give_way: impl FnOnce()) -> bool {
    compiler_fence(Ordering::SeqCst);
    control.request.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    // The kernel may take the grant back right after this look; then giving way does nothing.
    let granted = control.granted.load(Ordering::Relaxed) != 0;
    if granted {
        give_way();
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_was_not_interrupted_makes_no_call() {
        let control = Control { request: AtomicU8::new(0), granted: AtomicU8::new(0) };
        ask(&control);
        assert_eq!(control.request.load(Ordering::Relaxed), 1);
        assert!(!thank(&control, || panic!("nothing was granted")));
        assert_eq!(control.request.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_grant_is_given_back_once() {
        let control = Control { request: AtomicU8::new(0), granted: AtomicU8::new(0) };
        ask(&control);
        // As the kernel does it.
        control.request.store(0, Ordering::Relaxed);
        control.granted.store(1, Ordering::Relaxed);
        let mut calls = 0;
        let kernel = || {
            calls += 1;
            control.granted.store(0, Ordering::Relaxed);
        };
        assert!(thank(&control, kernel));
        assert_eq!(calls, 1);
        // Taken back by the kernel: nothing to give.
        ask(&control);
        assert!(!thank(&control, || panic!("it was taken back")));
    }

    #[test]
    fn short_areas_are_not_touched() {
        assert!(!library_reaches(0) && !library_reaches(32) && library_reaches(33));
        assert!(!kernel_reaches(0) && !kernel_reaches(28) && kernel_reaches(33));
    }

    #[test]
    fn the_thread_pointer_is_the_threads_own() {
        let mine = thread_pointer().addr();
        let other = std::thread::spawn(|| thread_pointer().addr()).join().unwrap();
        assert_ne!(mine, other);
        assert_eq!(mine % align_of::<usize>(), 0);
    }
}
