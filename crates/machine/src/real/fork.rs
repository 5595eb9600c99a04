//! One word that is zero in every new child, and the number that each process puts there.
//!
//! Where the kernel wipes no page in a child, the number is that of the process itself, asked for
//! each time. Why not a handler of `pthread_atfork` there: the program's own handlers may run
//! before it and use locks, it allocates, and it misses a bare `clone`.
//!
//! # Invariants
//!
//! 1. `WORD` is null, or [`NONE`], or points to a word that lives as long as the process.
//! 2. That word becomes 0 when a child begins, and is changed otherwise from 0 only.
//! 3. `LAST` is at least every number that this process or one of its ancestors has taken, because
//!    a child inherits it. So the number that a child takes is none of theirs.
//!
//! A child that begins between a thread's mapping of the page and its publication maps a page of
//! its own. It may take the same number as its parent then. The parent had no number before, so
//! nothing in the child is stamped with it.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Stands in `WORD` where the kernel wipes no page.
static NONE: AtomicU32 = AtomicU32::new(0);

/// Unlike the word, it is inherited.
static LAST: AtomicU32 = AtomicU32::new(0);

/// True if this process can be a child that goes on with its parent's memory.
pub(crate) const POSSIBLE: bool = true;

#[inline]
pub(crate) fn generation() -> u32 {
    // Acquire: pairs with the Release in `publish`, which shows the advice given to the kernel.
    // SAFETY: Invariant 1.
    match unsafe { WORD.load(Ordering::Acquire).as_ref() } {
        // Relaxed: a number that is only compared. A fork synchronizes by itself.
        Some(word) => match word.load(Ordering::Relaxed) {
            0 => number(word),
            number => number,
        },
        None => number(publish()),
    }
}

/// Takes a number for this process, if no other thread has.
#[cold]
fn number(word: &AtomicU32) -> u32 {
    if ptr::eq(word, &raw const NONE) {
        return process();
    }
    // Relaxed, both: as in `generation`.
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(other) => other,
    }
}

/// Returns the system's number of this process.
fn process() -> u32 {
    // SAFETY: a question without pointers. The answer is positive.
    unsafe { libc::getpid() }.unsigned_abs().max(1)
}

/// Finds a word that is zero in a child.
#[cold]
fn publish() -> &'static AtomicU32 {
    let mine = wiped_word().unwrap_or((&raw const NONE).cast_mut());
    let published =
        WORD.compare_exchange(ptr::null_mut(), mine, Ordering::Release, Ordering::Acquire);
    let word = match published {
        Ok(_) => mine,
        Err(first) => {
            unmap(mine);
            first
        }
    };
    // SAFETY: Invariant 1.
    unsafe { &*word }
}

/// The kernel rounds it up to a page.
#[cfg(target_os = "linux")]
const LENGTH: usize = size_of::<AtomicU32>();

/// A word in a page that the kernel wipes in a child; `None` if it does not do so.
#[cfg(target_os = "linux")]
fn wiped_word() -> Option<*mut AtomicU32> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
    let page = unsafe { libc::mmap(ptr::null_mut(), LENGTH, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page just mapped, which is private and has no file.
    if !unsafe { super::advice::is_followed(page, LENGTH, libc::MADV_WIPEONFORK) } {
        unmap(page.cast());
        return None;
    }
    Some(page.cast())
}

#[cfg(not(target_os = "linux"))]
fn wiped_word() -> Option<*mut AtomicU32> {
    None
}

/// Gives a page back that no other thread has seen.
#[cfg(target_os = "linux")]
fn unmap(word: *mut AtomicU32) {
    if !ptr::eq(word, &raw const NONE) {
        // SAFETY: mapped by `wiped_word`, and not published.
        unsafe { libc::munmap(word.cast(), LENGTH) };
    }
}

#[cfg(not(target_os = "linux"))]
fn unmap(_: *mut AtomicU32) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `body` in a child and returns the number that it makes.
    fn in_child(body: impl FnOnce() -> u32) -> u32 {
        let mut pipe = [0; 2];
        // SAFETY: the array has room for both ends.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: the child only computes, writes to the pipe and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let number = body().to_ne_bytes();
            // SAFETY: the bytes are live.
            unsafe { libc::write(pipe[1], number.as_ptr().cast(), number.len()) };
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        let mut number = [0; 4];
        // SAFETY: the bytes are writable.
        let read = unsafe { libc::read(pipe[0], number.as_mut_ptr().cast(), number.len()) };
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
        for end in pipe {
            // SAFETY: opened above.
            unsafe { libc::close(end) };
        }
        assert_eq!(read, 4);
        u32::from_ne_bytes(number)
    }

    #[test]
    fn children_and_their_children_differ_from_their_parents() {
        let here = generation();
        let child = in_child(generation);
        assert_ne!(child, here);
        let grandchild = in_child(|| {
            let child = generation();
            let grandchild = in_child(generation);
            if generation() == child && grandchild != child { grandchild } else { here }
        });
        assert_ne!(grandchild, here);
        assert_eq!(generation(), here);
    }

    #[test]
    fn without_a_wiped_page_the_number_is_the_processs() {
        let here = number(&NONE);
        assert_eq!(here, std::process::id());
        let child = in_child(|| number(&NONE));
        assert!(child != here && child > 0);
        assert_eq!(NONE.load(Ordering::Relaxed), 0, "never changed");
    }
}
