//! Memory for the shim itself. It comes from the kernel and is never given back.
//!
//! Why not the C library's allocator: the program may have brought its own `malloc`, and the locks
//! of that `malloc` are locks that the shim is called for. The shim allocates only as it starts (to
//! read the quota of processor time), and to say why it ends the program. So nothing needs to be
//! freed. A counter that only grows needs no lock, which a fork could leave locked for ever.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use stanchion_machine::atomic::{AtomicUsize, Ordering};

/// The allocator of the shim: an arena of `SIZE` bytes, and pages of the kernel for more.
struct Arena;

#[global_allocator]
static ARENA: Arena = Arena;

/// The size of the arena in bytes.
const SIZE: usize = 1 << 20;

/// The address of the arena, or 0 before it is mapped.
static START: AtomicUsize = AtomicUsize::new(0);
/// The number of bytes of the arena that are in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Maps `length` bytes of new memory.
fn map(length: usize) -> Option<*mut u8> {
    // SAFETY: asks for new memory anywhere.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

/// Returns the address of the arena. The first call maps it.
fn start() -> Option<usize> {
    // Acquire: pairs with the Release below. The memory is zeros, so there is nothing else to see.
    let start = START.load(Ordering::Acquire);
    if start != 0 {
        return Some(start);
    }
    let mine = map(SIZE)?;
    // Release: pairs with the Acquire above, and with the one here of a thread that comes second.
    match START.compare_exchange(0, mine.expose_provenance(), Ordering::Release, Ordering::Acquire)
    {
        Ok(_) => Some(mine.addr()),
        Err(first) => {
            // SAFETY: mapped above, and no other thread has seen it.
            unsafe { libc::munmap(mine.cast(), SIZE) };
            Some(first)
        }
    }
}

// SAFETY: each call gets bytes of its own: from a counter that only grows, or from the kernel.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(start) = start() else { return ptr::null_mut() };
        // The length includes room for the alignment.
        let Some(length) = layout.size().checked_add(layout.align()) else {
            return ptr::null_mut();
        };
        let fits = |used: usize| used.checked_add(length).filter(|&used| used <= SIZE);
        // Relaxed: the counter orders nothing else.
        match USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(used) => {
                let place = (start + used).next_multiple_of(layout.align());
                ptr::with_exposed_provenance_mut(place)
            }
            // The arena is full: use new pages, which are aligned to 4096.
            Err(_) if layout.align() <= 4096 => map(length).unwrap_or(ptr::null_mut()),
            Err(_) => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _place: *mut u8, _layout: Layout) {}
}
