//! One word that is zero in every new child, and the number that each process puts there.
//!
//! # Invariants
//!
//! 1. `WORD` is null or points to a word that lives as long as the process.
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

/// Unlike the word, it is inherited.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The word of a process whose kernel wipes no pages.
static UNWIPED: AtomicU32 = AtomicU32::new(0);

/// Whether this process can be a child that goes on with its parent's memory.
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
    // Relaxed, both: as in `generation`.
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(other) => other,
    }
}

/// Finds a word that is zero in a child.
#[cold]
fn publish() -> &'static AtomicU32 {
    let mine = wiped_word().unwrap_or_else(|| {
        wipe_in_handler();
        (&raw const UNWIPED).cast_mut()
    });
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

/// Leaves the work to the C library: `UNWIPED` is stored to in each child before `fork` returns.
fn wipe_in_handler() {
    extern "C" fn wipe() {
        // Relaxed: the child has one thread.
        UNWIPED.store(0, Ordering::Relaxed);
    }
    // A second registration, by a thread that came at the same time, does no harm.
    // SAFETY: the handler only stores to a static.
    unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
}

/// The kernel rounds it up to a page.
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
fn unmap(word: *mut AtomicU32) {
    if !ptr::eq(word, &raw const UNWIPED) {
        // SAFETY: mapped by `wiped_word`, and not published.
        unsafe { libc::munmap(word.cast(), LENGTH) };
    }
}

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
        assert!(child > here, "{child} in the child, {here} here");
        let grandchild = in_child(|| {
            let child = generation();
            let grandchild = in_child(generation);
            if generation() == child && grandchild > child { grandchild } else { 0 }
        });
        assert!(grandchild > here, "{grandchild}");
        assert_eq!(generation(), here);
    }

    #[test]
    fn the_handler_wipes_in_a_child_only() {
        wipe_in_handler();
        UNWIPED.store(7, Ordering::Relaxed);
        assert_eq!(in_child(|| UNWIPED.load(Ordering::Relaxed) + 1), 1);
        assert_eq!(UNWIPED.load(Ordering::Relaxed), 7);
    }
}
