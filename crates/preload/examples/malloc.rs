//! A program with an allocator of its own, for the tests of the shim. Its threads wait for the lock
//! of the allocator.
//!
//! It replaces `malloc`, so the C library allocates there too. A thread that allocates while it
//! holds or takes that lock would wait for itself.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use std::cell::UnsafeCell;
    use std::ffi::c_void;
    use std::ptr;

    /// The bytes of all memory that can be allocated.
    const SIZE: usize = 64 << 20;
    /// The bytes before each allocation, which hold its size.
    const HEAD: usize = 16;

    /// The memory, and the number of bytes in use.
    struct Heap(UnsafeCell<([u8; SIZE], usize)>);
    // SAFETY: it is used under the lock only.
    unsafe impl Sync for Heap {}
    static HEAP: Heap = Heap(UnsafeCell::new(([0; SIZE], 0)));

    #[unsafe(no_mangle)]
    /// The lock of the allocator.
    static ALLOCATOR_LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

    /// A mutex of the C library.
    #[repr(transparent)]
    struct Lock(UnsafeCell<libc::pthread_mutex_t>);
    // SAFETY: a mutex may be used by several threads.
    unsafe impl Sync for Lock {}

    /// Returns memory that is aligned to 16. It is never given back.
    #[unsafe(no_mangle)]
    #[inline(never)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        // SAFETY: a mutex.
        unsafe { libc::pthread_mutex_lock(ALLOCATOR_LOCK.0.get()) };
        // SAFETY: this thread holds the lock.
        let (memory, used) = unsafe { &mut *HEAP.0.get() };
        let start = memory.as_mut_ptr();
        let start = start.wrapping_add(start.align_offset(16) + *used);
        let whole = HEAD + size.next_multiple_of(16);
        let found = if *used + whole + 16 > SIZE {
            ptr::null_mut()
        } else {
            *used += whole;
            // SAFETY: inside of the memory, and aligned.
            unsafe { start.cast::<usize>().write(size) };
            start.wrapping_add(HEAD)
        };
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(ALLOCATOR_LOCK.0.get()) };
        found.cast()
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
        // The memory is new, and so zero.
        // SAFETY: the caller's promise.
        number.checked_mul(size).map_or(ptr::null_mut(), |size| unsafe { malloc(size) })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the caller's promise.
        let new = unsafe { malloc(size) };
        if !old.is_null() && !new.is_null() {
            // SAFETY: `malloc` has written it.
            let before = unsafe { old.wrapping_byte_sub(HEAD).cast::<usize>().read() };
            // SAFETY: both are that long.
            unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), before.min(size)) };
        }
        new
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn free(_: *mut c_void) {}
}

fn main() {
    let list = || (0..20_000_u64).map(Box::new).map(|number| *number).sum::<u64>();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(list(), 199_990_000));
        }
    });
    println!("ok");
}
