//! Where a thread's handler runs: on memory of its own, for as long as the thread can be interrupted.
//!
//! Why not on the thread's stack: it may be a coroutine's just then, of a few KiB. Why not on the one that the standard library gives each thread: it is
//! made for a handler that reports an overflow, and what the kernel saves there of wide registers leaves little of it.

use core::mem::MaybeUninit;
use core::ptr;
use std::boxed::Box;

use super::super::signal::errno;
use crate::control::Refused;

/// A handler that sleeps until its turn comes needs less than a tenth of it.
const SIZE: usize = 64 << 10;

pub(super) struct SignalStack {
    /// Ours alone to free; written by the kernel and by handlers, so no `Box`, which would say that nobody else writes.
    memory: *mut [MaybeUninit<u8>],
    before: libc::stack_t,
}

impl SignalStack {
    /// Gives the calling thread one.
    pub(super) fn install() -> Result<Self, Refused> {
        let mut installed =
            Self { memory: Box::into_raw(Box::new_uninit_slice(SIZE)), before: none() };
        let stack = libc::stack_t { ss_sp: installed.memory.cast(), ss_flags: 0, ss_size: SIZE };
        // SAFETY: the memory is there until it has been taken from the thread; `before` is writable.
        if unsafe { libc::sigaltstack(&raw const stack, &raw mut installed.before) } != 0 {
            return Err(Refused::Other { call: "sigaltstack", errno: errno() });
        }
        Ok(installed)
    }

    /// Gives the calling thread back what it had.
    pub(super) fn remove(self) {
        self.replace_by(self.before);
    }

    /// The calling thread ends, and what it had may be gone.
    pub(super) fn remove_at_end(self) {
        self.replace_by(none());
    }

    fn replace_by(&self, other: libc::stack_t) {
        let mut now = none();
        // SAFETY: only asks; `now` is writable.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut now) };
        if now.ss_sp == self.memory.cast() {
            // SAFETY: what the thread had before, or none.
            unsafe { libc::sigaltstack(&raw const other, ptr::null_mut()) };
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and the thread has another stack or none by now, or did not take this one.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

fn none() -> libc::stack_t {
    libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 }
}
