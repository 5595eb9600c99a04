//! A thread's alternate signal stack: on the stack that has overflowed no handler can run.
//!
//! If the standard library has a handler of its own, it gives such a stack to each thread that it
//! starts. It has one if `main` is a Rust program's. Threads of C, and those of a library in a C
//! program, have none.

use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc, dealloc};

use super::refusal::failed;
use crate::stack::StackError;

/// Enough for any processor's registers and for a handler that writes a line, or for a handler of
/// another library that does more.
const LAYOUT: Layout = match Layout::from_size_align(64 << 10, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("64 is a power of two"),
};

/// Ours, if the thread had none.
#[derive(Debug)]
pub(super) struct Alternate(Option<NonNull<u8>>);

impl Alternate {
    /// Sees to it that the calling thread has one.
    pub(super) fn ensure() -> Result<Self, StackError> {
        if now()?.ss_flags & libc::SS_DISABLE == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the layout is not empty.
        let memory = NonNull::new(unsafe { alloc(LAYOUT) });
        let memory = memory.ok_or(StackError::Memory { bytes: LAYOUT.size() })?;
        let ours = Self(Some(memory));
        let stack =
            libc::stack_t { ss_sp: memory.as_ptr().cast(), ss_flags: 0, ss_size: LAYOUT.size() };
        // SAFETY: the memory is there until it has been taken from the thread.
        if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } != 0 {
            return Err(failed("sigaltstack"));
        }
        Ok(ours)
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        let Some(memory) = self.0 else { return };
        match now() {
            // Other code has replaced it.
            Ok(now) if now.ss_sp != memory.as_ptr().cast() => {}
            Ok(_) => {
                let none = libc::stack_t {
                    ss_sp: ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: LAYOUT.size(),
                };
                // SAFETY: takes the memory away from the thread, which is not on it: this is
                // ordinary code.
                if unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) } != 0 {
                    return;
                }
            }
            // Not known to be ours alone: better lost.
            Err(_) => return,
        }
        // SAFETY: allocated with this layout, and no thread uses it any more.
        unsafe { dealloc(memory.as_ptr(), LAYOUT) };
    }
}

fn now() -> Result<libc::stack_t, StackError> {
    let mut now = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: only asks; `now` is writable.
    if unsafe { libc::sigaltstack(ptr::null(), &raw mut now) } == 0 {
        Ok(now)
    } else {
        Err(failed("sigaltstack"))
    }
}
