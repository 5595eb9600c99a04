//! The fiber's context in ThreadSanitizer, in a build with the cfg `stanchion_tsan`. In every other
//! build there is none, and it costs nothing.
//!
//! ThreadSanitizer keeps for each kernel thread what that thread has seen of the others, and its
//! stack of calls. A switch of stacks that it is not told of mixes two of them up: the one grows
//! without end, and the other is popped below its bottom. So each fiber has a context there, which
//! is made together with its stack.
//!
//! Why both switches are reported from the scheduler loop's side, and not each just before it is
//! made: `corosensei` is instrumented as well, and its functions that leave one stack return on the
//! other. Reported here, whatever `resume` enters and leaves is entered and left in the fiber's
//! context, and so is what `suspend` does. Each balances by itself, however many functions the
//! compiler has left of it.
//!
//! # Invariants
//!
//! 1. The fiber's context is the running one only inside [`Context::run`]. So the context that is
//!    destroyed is never the running one.
//!
//! The switches are reported as ones that synchronize (flags 0), because they do: the scheduler
//! loop and the fiber run on one kernel thread, one after the other. Nothing is reported between
//! two workers: whether a fiber that migrates sees what it did before is what ThreadSanitizer is
//! to judge.
//!
//! Source: `compiler-rt/include/sanitizer/tsan_interface.h`.

#[cfg(not(stanchion_tsan))]
pub(super) use absent::Context;
#[cfg(stanchion_tsan)]
pub(super) use present::Context;

#[cfg(not(stanchion_tsan))]
mod absent {
    /// Nothing: there is no ThreadSanitizer.
    pub(in crate::thread::fiber) struct Context;

    impl Context {
        #[inline]
        pub(in crate::thread::fiber) fn new() -> Self {
            Self
        }

        /// Calls `resume`.
        #[inline]
        pub(in crate::thread::fiber) fn run<R>(&self, resume: impl FnOnce() -> R) -> R {
            resume()
        }
    }
}

#[cfg(stanchion_tsan)]
mod present {
    use core::ffi::{c_uint, c_void};

    unsafe extern "C" {
        fn __tsan_get_current_fiber() -> *mut c_void;
        fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
        fn __tsan_destroy_fiber(fiber: *mut c_void);
        fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
    }

    /// ThreadSanitizer's handle of the fiber.
    pub(in crate::thread::fiber) struct Context(*mut c_void);

    impl Context {
        pub(in crate::thread::fiber) fn new() -> Self {
            // SAFETY: it takes a number.
            Self(unsafe { __tsan_create_fiber(0) })
        }

        /// Calls `resume`, which continues on the fiber and returns when the fiber was left.
        pub(in crate::thread::fiber) fn run<R>(&self, resume: impl FnOnce() -> R) -> R {
            // SAFETY: it takes nothing.
            let scheduler_loop = unsafe { __tsan_get_current_fiber() };
            // SAFETY: a context that is not destroyed, and not running: one worker at a time has
            // the fiber.
            unsafe { __tsan_switch_to_fiber(self.0, 0) };
            let result = resume();
            // SAFETY: the context of the calling kernel thread, which has not ended.
            unsafe { __tsan_switch_to_fiber(scheduler_loop, 0) };
            result
        }
    }

    impl Drop for Context {
        fn drop(&mut self) {
            // SAFETY: `new` made it, it is destroyed once, and it is not running (Invariant 1).
            unsafe { __tsan_destroy_fiber(self.0) };
        }
    }
}
