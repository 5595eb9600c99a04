//! A bounded buffer: some threads put, others take, and each end has a lock of its own. So a thread
//! that puts does not wait for one that takes.
//!
//! It shows how to look at a crate of your own on a simulated multiprocessor. The algorithm is
//! sound and so are its locks. With eight processors it is as fast as the work allows. With sixteen
//! it is no faster, because of something that is nowhere in its text: both ends lie on one cache
//! line. So each put takes the line away from the threads that take, and each take from those that
//! put. `Buffer<T, N, Near>` is the buffer as a programmer would first write it.
//! `Buffer<T, N, Apart>` is the same with one line more, an alignment.
//!
//! ```text
//! RUSTFLAGS="--cfg stanchion_simulated" \
//!     cargo run --manifest-path examples/bounded_buffer/Cargo.toml
//! ```
//!
//! simulates both, prints their costs and the words that share a line, and draws the waiting
//! threads. The tests run for real by plain `cargo test`, under loom with
//! `RUSTFLAGS="--cfg stanchion_loom"`, and simulated with the flag above.

#[cfg(stanchion_simulated)]
pub mod simulation;

use std::array;
use std::borrow::Borrow;

use stanchion::machine;
use stanchion::machine::atomic::{AtomicUsize, Ordering};
use stanchion::machine::cell::UnsafeCell;
use stanchion::machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion::spin::TicketMutex;

/// Room for `N` entries, which come out in the order in which they went in.
///
/// ```
/// use bounded_buffer::Buffer;
///
/// stanchion::machine::model(|| {
///     let buffer = Buffer::<_, 2>::new();
///     buffer.put("a");
///     buffer.put("b");
///     assert_eq!((buffer.take(), buffer.take()), ("a", "b"));
/// });
/// ```
pub struct Buffer<T, const N: usize, E = Near> {
    /// The end that entries come in at.
    put: E,
    /// The end that entries go out at.
    take: E,
    /// Entry `n` is in slot `n % N`, from when it has passed `put` until it has passed `take`.
    slots: [UnsafeCell<Option<T>>; N],
}

/// One end of a buffer.
pub struct End {
    /// The turn at this end: its holder lets an entry pass. Inside is the number of entries that
    /// had passed the other end at the last look.
    turn: TicketMutex<usize>,
    /// The number of entries that have passed. Written by the holder of the turn.
    passed: AtomicUsize,
}

impl Default for End {
    fn default() -> Self {
        Self { turn: TicketMutex::new(0), passed: AtomicUsize::new(0) }
    }
}

/// An end beside the other one.
pub type Near = End;

/// An end on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart(End);

impl Borrow<End> for Apart {
    fn borrow(&self) -> &End {
        &self.0
    }
}

// SAFETY: the holder of the turn at `put` touches a slot before its entry has passed there. From
// then until the entry has passed `take`, the holder of the turn at `take` touches it. `T: Send`
// because these are two threads.
unsafe impl<T: Send, const N: usize, E: Sync> Sync for Buffer<T, N, E> {}

impl<T, const N: usize, E: Borrow<End> + Default> Buffer<T, N, E> {
    /// An empty buffer.
    pub fn new() -> Self {
        const { assert!(N > 0, "a buffer without room") };
        let slots = array::from_fn(|_| UnsafeCell::new(None));
        Self { put: E::default(), take: E::default(), slots }
    }

    /// Names the parts of the buffer in the statistics of a simulation; does nothing elsewhere.
    pub fn label(&self) {
        let (put, take) = (self.put.borrow(), self.take.borrow());
        machine::label(&put.turn, "put.turn");
        machine::label(&put.passed, "put.passed");
        machine::label(&take.turn, "take.turn");
        machine::label(&take.passed, "take.passed");
        machine::label(&self.slots, "slots");
    }

    /// Puts an entry in, as soon as there is room.
    pub fn put(&self, entry: T) {
        let (put, take) = (self.put.borrow(), self.take.borrow());
        let mut taken = put.turn.lock();
        // Relaxed: only the holder of the turn changes it.
        let number = put.passed.load(Ordering::Relaxed);
        if number - *taken == N {
            // Acquire: pairs with the Release in `take`, before which the slot was emptied.
            let has_room = |taken| number - taken < N;
            let policy = &mut <Patient>::start();
            *taken = wait_until(&take.passed, Ordering::Acquire, has_room, policy);
        }
        // SAFETY: we have the turn, and the entry before in this slot has passed `take`.
        self.slots[number % N].with_mut(|slot| unsafe { *slot = Some(entry) });
        // Release: pairs with the Acquire in `take`.
        put.passed.store(number + 1, Ordering::Release);
    }

    /// Takes the oldest entry out, as soon as there is one.
    pub fn take(&self) -> T {
        let (put, take) = (self.put.borrow(), self.take.borrow());
        let mut filled = take.turn.lock();
        // Relaxed: only the holder of the turn changes it.
        let number = take.passed.load(Ordering::Relaxed);
        if number == *filled {
            // Acquire: pairs with the Release in `put`, before which the slot was filled.
            let has_entry = |filled| filled > number;
            let policy = &mut <Patient>::start();
            *filled = wait_until(&put.passed, Ordering::Acquire, has_entry, policy);
        }
        // SAFETY: we have the turn, and the entry has passed `put`.
        let entry = self.slots[number % N].with_mut(|slot| unsafe { (*slot).take() });
        // Release: pairs with the Acquire in `put`.
        take.passed.store(number + 1, Ordering::Release);
        entry.expect("an entry that has passed `put`")
    }
}

impl<T, const N: usize, E: Borrow<End> + Default> Default for Buffer<T, N, E> {
    fn default() -> Self {
        Self::new()
    }
}
