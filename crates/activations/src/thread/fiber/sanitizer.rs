//! What ThreadSanitizer is told of a fiber, in a build with the cfg `stanchion_tsan`; nothing, and at no cost, in every other.
//!
//! ThreadSanitizer keeps for each kernel thread what that has seen of the others, and its stack of calls. A switch of stacks that it is not told of mixes
//! two of them up: the one grows without end, and the other is popped below its bottom. So each fiber has a context there, which is made with its stack.
//!
//! Why both switches are told from the scheduler_loop's side, and not each just before it is made: `corosensei` is instrumented as well, and its functions that leave one
//! stack return on the other. Told here, whatever `resume` enters and leaves is entered and left in the fiber's context, and so is what `suspend` does: each
//! balances by itself, however many functions the compiler has left of it.
//!
//! # Invariants
//!
//! 1. The fiber's context is the running one only inside [`Context::run`]: so it is never the one that is destroyed.
//!
//! The switches are told as such that synchronize (flags 0), because they do: the scheduler_loop and the fiber are one kernel thread after the other's code. Between two
//! workers nothing is told: that a fiber which migrates sees what it did before is what is to be judged.
//!
//! Source: `compiler-rt/include/sanitizer/tsan_interface.h`.

#[cfg(stanchion_tsan)]
pub(super) use told::Context;
#[cfg(not(stanchion_tsan))]
pub(super) use untold::Context;

#[cfg(not(stanchion_tsan))]
mod untold {
    /// Nobody is told.
    pub(in super::super) struct Context;

    impl Context {
        #[inline]
        pub(in super::super) fn new() -> Self {
            Self
        }

        /// Calls `resume`.
        #[inline]
        pub(in super::super) fn run<R>(&self, resume: impl FnOnce() -> R) -> R {
            resume()
        }
    }
}

#[cfg(stanchion_tsan)]
mod told {
    use core::ffi::{c_uint, c_void};

    unsafe extern "C" {
        fn __tsan_get_current_fiber() -> *mut c_void;
        fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
        fn __tsan_destroy_fiber(fiber: *mut c_void);
        fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
    }

    /// What it knows the fiber by.
    pub(in super::super) struct Context(*mut c_void);

    impl Context {
        pub(in super::super) fn new() -> Self {
            // SAFETY: a number is all that it takes.
            Self(unsafe { __tsan_create_fiber(0) })
        }

        /// Calls `resume`, which goes on with the fiber and comes back when that has left.
        pub(in super::super) fn run<R>(&self, resume: impl FnOnce() -> R) -> R {
            // SAFETY: it takes nothing.
            let scheduler_loop = unsafe { __tsan_get_current_fiber() };
            // SAFETY: a context that is not destroyed, and not running: one worker at a time has the fiber.
            unsafe { __tsan_switch_to_fiber(self.0, 0) };
            let result = resume();
            // SAFETY: the context of the calling kernel thread, which has not ended.
            unsafe { __tsan_switch_to_fiber(scheduler_loop, 0) };
            result
        }
    }

    impl Drop for Context {
        fn drop(&mut self) {
            // SAFETY: made by `new`, destroyed once, and not running (Invariant 1).
            unsafe { __tsan_destroy_fiber(self.0) };
        }
    }
}
