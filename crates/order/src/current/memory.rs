//! Calls of the system: memory that other processes can read, the number of a thread, a clock, and
//! the end of a thread. Elsewhere than on 64-bit Linux there is no such memory.

use std::ffi::c_void;

/// A function that runs at the end of a thread, with the pointer that the thread has left.
pub(crate) type End = unsafe extern "C" fn(*mut c_void);

pub(super) use system::{at_thread_end, coarse_ns, shared, thread};

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(miri)
))]
mod system {
    use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
    use std::ptr;
    use std::sync::OnceLock;

    use super::End;

    #[cfg(target_arch = "x86_64")]
    const MEMFD_CREATE: c_long = 319;
    #[cfg(target_arch = "x86_64")]
    const GETTID: c_long = 186;
    #[cfg(not(target_arch = "x86_64"))]
    const MEMFD_CREATE: c_long = 279;
    #[cfg(not(target_arch = "x86_64"))]
    const GETTID: c_long = 178;

    const CLOSE_ON_EXEC: c_uint = 1;
    const READ_AND_WRITE: c_int = 3;
    const SHARED: c_int = 1;
    const MONOTONIC_COARSE: c_int = 6;

    #[repr(C)]
    struct Time {
        /// Whole seconds.
        seconds: i64,
        /// The rest, below a second.
        nanoseconds: i64,
    }

    unsafe extern "C" {
        // `memfd_create` and `gettid` are missing in older C libraries.
        fn syscall(number: c_long, ...) -> c_long;
        fn ftruncate(file: c_int, length: i64) -> c_int;
        fn mmap(
            start: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            offset: i64,
        ) -> *mut c_void;
        fn close(file: c_int) -> c_int;
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
        fn pthread_key_create(key: *mut c_uint, end: Option<End>) -> c_int;
        fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    }

    /// Returns new memory of zeros, which another process can open by its descriptor. It and the
    /// descriptor stay until the process ends.
    pub(crate) fn shared(length: usize) -> Option<*mut c_void> {
        let name: *const c_char = c"stanchion-locks".as_ptr();
        // SAFETY: makes a descriptor. The name is a string of C.
        let file = unsafe { syscall(MEMFD_CREATE, name, CLOSE_ON_EXEC) };
        let file = c_int::try_from(file).ok().filter(|&file| file >= 0)?;
        let failed = ptr::without_provenance_mut(usize::MAX);
        // SAFETY: changes the file that was just made.
        let is_long = unsafe { ftruncate(file, length as i64) } == 0;
        let start = if is_long {
            // SAFETY: new memory anywhere, over the whole of the file.
            unsafe { mmap(ptr::null_mut(), length, READ_AND_WRITE, SHARED, file, 0) }
        } else {
            failed
        };
        if start == failed {
            // SAFETY: made above, and used by nothing else.
            unsafe { close(file) };
            return None;
        }
        Some(start)
    }

    /// Returns the system's number of the calling thread.
    pub(crate) fn thread() -> u32 {
        // SAFETY: returns a number.
        unsafe { syscall(GETTID) as u32 }
    }

    /// Returns the monotonic clock's time at the last tick. It takes no system call.
    #[inline]
    pub(crate) fn coarse_ns() -> u64 {
        let mut time = Time { seconds: 0, nanoseconds: 0 };
        // SAFETY: writes to `time`.
        unsafe { clock_gettime(MONOTONIC_COARSE, &mut time) };
        time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
    }

    /// Has `end` called with `value` at the end of the calling thread. Returns false if that cannot
    /// be. Why not a thread-local value with a destructor: registering one allocates.
    pub(crate) fn at_thread_end(end: End, value: *const c_void) -> bool {
        static KEY: OnceLock<Option<c_uint>> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: writes to `key`.
            let failed = unsafe { pthread_key_create(&mut key, Some(end)) };
            (failed == 0).then_some(key)
        });
        // SAFETY: the key was made above and is never deleted.
        key.is_some_and(|key| unsafe { pthread_setspecific(key, value) } == 0)
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(miri)
)))]
mod system {
    use std::ffi::c_void;

    use super::End;

    pub(crate) fn shared(_length: usize) -> Option<*mut c_void> {
        None
    }

    pub(crate) fn thread() -> u32 {
        0
    }

    pub(crate) fn coarse_ns() -> u64 {
        0
    }

    pub(crate) fn at_thread_end(_end: End, _value: *const c_void) -> bool {
        false
    }
}
