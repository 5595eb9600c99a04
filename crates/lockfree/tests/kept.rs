//! Tests of the memory that an empty queue keeps of what it once needed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use stanchion_lockfree::queue::FaaArrayQueue;

/// Counts the bytes that are allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const THREADS: usize = 8;

/// Fills a queue of large values and empties it, by several threads at once, and compares with what
/// its documentation allows it to keep. It kept
/// 256 segments of each thread, and as many that were ready.
#[test]
fn an_empty_queue_of_large_values_keeps_a_few_segments() {
    const SEGMENT: usize = 64 * (1024 + 8) + 1024;
    let rounds = if cfg!(miri) { 100 } else { 4_000 };
    let before = LIVE.load(Relaxed);
    let queue = FaaArrayQueue::new();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..rounds {
                    queue.push([0_u8; 1024]);
                }
                // Other threads may pop these, so not each finds as many as it pushed.
                while queue.pop().is_some() {}
            });
        }
    });
    assert!(queue.is_empty());
    let kept = LIVE.load(Relaxed) - before;
    // Of each thread: 4 that wait, one that each other thread looked at, one that is ready; and the
    // queue's own segment.
    let allowed = (THREADS * (4 + THREADS + 1) + 1) * SEGMENT;
    assert!(kept <= allowed, "{} KiB are kept, {} allowed", kept >> 10, allowed >> 10);
    println!("{} KiB are kept", kept >> 10);
    drop(queue);
    let left = LIVE.load(Relaxed).saturating_sub(before);
    assert!(left < SEGMENT, "{left} bytes are left");
}
