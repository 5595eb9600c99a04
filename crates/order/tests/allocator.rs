//! A global allocator with a recorded lock: the recorder allocates, and must not record itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use stanchion_order::{Identity, Mode, report, switch_on};

/// An allocator behind a spin lock.
struct Locked {
    /// True while a thread allocates.
    taken: AtomicBool,
    /// The lock's identity.
    identity: Identity,
    /// The number of acquisitions.
    count: AtomicUsize,
}

impl Locked {
    fn with<R>(&self, act: impl FnOnce() -> R) -> R {
        self.identity.acquiring(Mode::Exclusive);
        // Acquire: pairs with the Release below.
        while self.taken.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        self.identity.acquired(Mode::Exclusive);
        self.count.fetch_add(1, Ordering::Relaxed);
        let result = act();
        self.identity.released(Mode::Exclusive);
        // Release: pairs with the Acquire above.
        self.taken.store(false, Ordering::Release);
        result
    }
}

// SAFETY: each call is one of the system's allocator.
unsafe impl GlobalAlloc for Locked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract, which is the same.
        self.with(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        self.with(|| unsafe { System.dealloc(pointer, layout) });
    }
}

#[global_allocator]
static ALLOCATOR: Locked =
    Locked { taken: AtomicBool::new(false), identity: Identity::new(), count: AtomicUsize::new(0) };

#[test]
fn an_allocator_with_a_recorded_lock_is_recorded_and_does_not_recurse() {
    switch_on();
    let before = ALLOCATOR.count.load(Ordering::Relaxed);
    let (one, two) = (Identity::new(), Identity::new());
    thread::scope(|scope| {
        for pair in [[&one, &two], [&two, &one]] {
            let nested = move || {
                for lock in pair {
                    lock.acquiring(Mode::Exclusive);
                    lock.acquired(Mode::Exclusive);
                    drop(vec![0_u8; 100]);
                }
                pair.iter().for_each(|lock| lock.released(Mode::Exclusive));
            };
            scope.spawn(nested).join().expect("no acquisition panics");
        }
    });
    let report = report();
    assert_eq!(report.cycles.len(), 1, "{report}");
    assert_eq!(report.losses, Default::default());
    assert!(report.pairs >= 4, "each lock, and then the allocator's: {report}");
    assert!(ALLOCATOR.count.load(Ordering::Relaxed) > before);
}
