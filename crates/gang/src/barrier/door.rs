//! Where those sleep who wait for a phase to be over.
//!
//! Why not sleep on the word that counts arrivals: each arrival would change it, and those about to sleep would have to come back and look. And a
//! futex has 32 bits.
//!
//! ```text
//! sleeper                                  the one that ends the phase
//! -------                                  ---------------------------
//! (1) sleepers += 1                        (a) the phase is over
//! (2) fence                                (b) fence
//! (3) read the door                        (c) sleepers > 0?
//! (4) is the phase over?                   (d)   move the door
//! (5) sleep while the door is as in (3)    (e)   wake all
//! ```
//!
//! # No wake-up is lost
//!
//! If (c) does not see (1), the fences make (4) see (a). If it does, there is a (d). Either (3) reads what (d) wrote, and then (4) sees (a); or it
//! read what was before, and then (5) does not sleep, or sleeps before (e).
//!
//! # Orderings
//!
//! The fences of (2) and (b) pair with each other. (3) is Acquire and pairs with (d) by the fence of (b), so that (4) sees (a). The rest is Relaxed:
//! a sleeper is let go by what it sees in (4), with the ordering of that word.

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};
use machine::clock::Deadline;
use machine::park::{self, Woken};
use machine::topology::CachePadded;

/// A door: closed until the phase is over, for all at once.
pub(super) struct Door(CachePadded<Words>);

struct Words {
    door: AtomicU32,
    sleepers: AtomicU32,
}

impl Door {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(Words { door: AtomicU32::fresh(0), sleepers: AtomicU32::fresh(0) }))
    }

    /// Sleeps until `over` yields something; `None` if it has not until `deadline`.
    #[cold]
    pub(super) fn sleep<T>(&self, over: impl Fn() -> Option<T>, deadline: Deadline) -> Option<T> {
        // Relaxed: the fence orders it.
        self.0.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `open`.
        fence(Ordering::SeqCst);
        let seen = loop {
            // Acquire: pairs with the fence of `open`, which comes before the door is moved.
            let door = self.0.door.load(Ordering::Acquire);
            if let Some(seen) = over() {
                break Some(seen);
            }
            if park::wait(&self.0.door, door, deadline) == Woken::TimedOut {
                break None;
            }
        };
        // Relaxed: who still sees this one wakes nobody.
        self.0.sleepers.fetch_sub(1, Ordering::Relaxed);
        seen
    }

    /// The phase is over: lets all go on. After the write that says so.
    #[inline]
    pub(super) fn open(&self) {
        // Pairs with the fence in `sleep`.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it.
        if self.0.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Relaxed: the fence in `open` comes before it, and makes it a release for the Acquire in `sleep`.
        self.0.door.fetch_add(1, Ordering::Relaxed);
        park::wake_all(&self.0.door);
    }
}
