//! The stack of a thread's handler: memory of its own, from when the thread is first to be
//! interrupted until it ends.
//!
//! Why not on the thread's stack: it may be a coroutine's just then, of a few KiB. Why not on the
//! one that the standard library gives each thread: it is made for a handler that reports an
//! overflow, and what the kernel saves there of wide registers leaves little of it.

use core::mem::MaybeUninit;
use core::ptr;
use std::boxed::Box;

use crate::backend::errno::errno;
use crate::control::Refused;

/// A handler that sleeps until its turn comes needs less than a tenth of it.
const SIZE: usize = 64 << 10;

pub(super) struct SignalStack {
    /// Freed only here. The kernel and handlers write it, so it is no `Box`: that would say that
    /// nothing else writes it.
    memory: *mut [MaybeUninit<u8>],
}

impl SignalStack {
    /// Gives the calling thread one.
    pub(super) fn install() -> Result<Self, Refused> {
        let installed = Self { memory: Box::into_raw(Box::new_uninit_slice(SIZE)) };
        let stack = libc::stack_t { ss_sp: installed.memory.cast(), ss_flags: 0, ss_size: SIZE };
        // SAFETY: the memory is there until it has been taken from the thread.
        if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } != 0 {
            return Err(Refused::Other { call: "sigaltstack", errno: errno() });
        }
        Ok(installed)
    }
}

impl Drop for SignalStack {
    /// The thread ends, and with it what it had before: it is left with none.
    fn drop(&mut self) {
        let mut now = none();
        // SAFETY: only asks; `now` is writable.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut now) };
        if now.ss_sp == self.memory.cast() {
            let none = none();
            // SAFETY: takes the memory away from the thread, which is not on it: this is ordinary
            // code.
            unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
        }
        // SAFETY: it came from a box, and nothing uses it any more.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

fn none() -> libc::stack_t {
    libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 }
}
