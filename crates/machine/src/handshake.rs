//! A handshake between two threads over two words: at least one of the two threads sees what the
//! other has written.
//!
//! ```text
//! the publisher, often               the announcer, seldom
//! --------------------               ---------------------
//! writes `published`                 writes `announced`
//! light fence                        heavy fence
//! reads `announced`                  reads `published` again
//! ```
//!
//! # What a use gains from it
//!
//! | the use | `published` | `announced` | both miss the other's write: then |
//! | --- | --- | --- | --- |
//! | a wake-up | there is work | I am about to sleep | the work waits and the thread sleeps |
//! | an entry | the owner is inside | a thief is inside | both are inside |
//! | a reclamation | I read this node | the node is retired | a node that is read is freed |
//! | a shutdown | one more is inside | it is closed | the one inside is left behind |
//!
//! The handshake excludes the last column. A use therefore needs one argument of its own: why it is
//! enough that one of the two sees the other. A thread that sees the other may wake it, retreat,
//! keep the node, or wait until the other has gone.
//!
//! # Proof
//!
//! Let P write `published`, fence, and read `announced`. Let A write `announced`, fence, and read
//! `published`. The claim: P reads what A wrote, or A reads what P wrote. "What it wrote" includes
//! every later value of that word.
//!
//! **Both fences are `fence(SeqCst)`.** All such fences have one total order, on which all threads
//! agree. If P's fence comes first in it, P's write stands before the first fence, and A's read
//! after the second. C++20 and Rust promise that such a read returns that write or a later one
//! (\[atomics.order\] 4). If A's fence comes first, the same holds with the roles exchanged.
//!
//! **The heavy fence is the kernel's barrier, and the light fence orders the compiler only.** The
//! call puts a full barrier into P's thread, at some moment between its begin and its return. A
//! thread that does not run meanwhile has passed such a barrier in the kernel's switch. The
//! compiler has kept P's write before the light fence and P's read after it. So the barrier falls
//! on one of two sides.
//!
//! - It falls after P's write. Then the write is visible before A's call returns, and A's read
//!   returns it.
//! - It falls before P's read. A's write came before the call, so P's read returns it.
//!
//! **More threads.** The claim is about each pair of a publisher and an announcer. It holds for any
//! number of both. Two announcers have the same promise between them, since a heavy fence is also a
//! fence of its caller. Two publishers have none.
//!
//! **More words.** All that a side writes before its fence is covered, and all that it reads after
//! it. So `published` may be a queue, and `announced` one bit for each thread.
//!
//! **What is not promised.** The handshake makes one write visible. It does not hand over the data
//! behind it, unless the fences are `fence(SeqCst)`: the language knows nothing of the kernel's
//! barrier. A use that goes on to read such data gives its words Release and Acquire.
//!
//! The models of `crates/loom/machine/tests/together/handshake.rs` check the claim for each kind
//! of pair. They fail if either fence is left out.
//!
//! # Which fences
//!
//! - [`Asymmetric`]: one side runs far more often, and pays nothing. The other side pays some
//!   microseconds for both. See [`asymmetric`].
//! - [`Symmetric`]: both sides pay for `fence(SeqCst)`. That is right if both run about equally
//!   often, or if the announcer cannot afford a system call.
//!
//! The type keeps the two apart. `fence(SeqCst)` on one side and a light fence on the other would
//! order nothing.
//!
//! # How it is used
//!
//! A use is a constant with a name in capitals, beside the words that it relates. Both sides call
//! the constant's fences. `cargo xtask weaken` finds the calls by that name, removes each in turn,
//! and demands that a model of the use fails.
//!
//! ```
//! use stanchion_machine::{atomic::{AtomicU32, Ordering::Relaxed}, handshake::{Handshake, Reach}};
//! /// The release of the lock against a thread that is about to sleep on it.
//! const SLEEP: Handshake = Handshake::new("HELD", "SLEEPERS", Reach::AllThreads);
//! static HELD: AtomicU32 = AtomicU32::new(1);
//! static SLEEPERS: AtomicU32 = AtomicU32::new(0);
//!
//! fn release() -> bool {
//!     HELD.store(0, Relaxed);
//!     SLEEP.light();
//!     SLEEPERS.load(Relaxed) != 0 // Then there is a thread to wake.
//! }
//!
//! fn may_sleep() -> bool {
//!     SLEEPERS.fetch_add(1, Relaxed);
//!     SLEEP.heavy();
//!     HELD.load(Relaxed) != 0 // Then a later release wakes this thread.
//! }
//! # assert!(may_sleep() && release());
//! ```
//!
//! Source: Dijkstra, "Cooperating sequential processes", 1965, for Dekker's algorithm; Dice, Huang,
//! Yang, "Asymmetric Dekker synchronization", 2001, for the fence on one side only.

use core::marker::PhantomData;

use crate::asymmetric;
use crate::atomic::{Ordering, fence};

/// The publisher's fence is light and the announcer's heavy: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asymmetric;

/// Both sides issue `fence(SeqCst)`: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symmetric;

/// The threads of which the announcer's fence must reach each that may be publishing.
///
/// Today each heavy fence reaches all threads of the process. A use that needs less says so, and
/// can have a cheaper fence when there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Any thread may publish at any moment.
    AllThreads,
    /// One thread publishes at a time, and the announcer knows which: the owner of a queue or slot.
    OneThread,
}

/// A pair of words of which a publisher and an announcer each write one and read the other; see the
/// [module](self).
///
/// It has no state: two constants that say the same are the same handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handshake<Fences = Asymmetric> {
    /// The name of the word that the publisher writes.
    published: &'static str,
    /// The name of the word that the announcer writes.
    announced: &'static str,
    /// The threads that may publish.
    reach: Reach,
    /// The kind of the fences.
    fences: PhantomData<Fences>,
}

impl Handshake<Asymmetric> {
    /// Relates the word that the publisher writes to the word that the announcer writes, with the
    /// light and the heavy fence.
    #[must_use]
    pub const fn new(published: &'static str, announced: &'static str, reach: Reach) -> Self {
        Self { published, announced, reach, fences: PhantomData }
    }

    /// Orders the publisher's write of `published` before its read of `announced`.
    ///
    /// Costs what [`asymmetric::light`] does.
    #[inline]
    pub fn light(self) {
        asymmetric::light();
    }

    /// Orders as [`light`](Self::light) does, for a publisher that keeps the answer of
    /// [`asymmetric::period`] itself.
    ///
    /// Costs nothing on the real machine. [`asymmetric::light_while_free`] says what each announcer
    /// must do in return.
    #[inline]
    pub fn light_while_free(self) {
        asymmetric::light_while_free();
    }

    /// Orders the announcer's write of `announced` before its second read of `published`.
    ///
    /// Costs what [`asymmetric::heavy`] does: a system call, some microseconds.
    #[inline]
    pub fn heavy(self) {
        asymmetric::heavy();
    }
}

impl Handshake<Symmetric> {
    /// Relates the two words with the same fence on both sides.
    #[must_use]
    pub const fn symmetric(published: &'static str, announced: &'static str, reach: Reach) -> Self {
        Self { published, announced, reach, fences: PhantomData }
    }

    /// Orders the caller's write of its own word before its read of the other's.
    ///
    /// It is `fence(SeqCst)`, and orders all that such a fence does.
    #[inline]
    pub fn fence(self) {
        // SeqCst: pairs with this fence of the other side.
        fence(Ordering::SeqCst);
    }
}

impl<Fences> Handshake<Fences> {
    /// Returns the names of the publisher's word and of the announcer's.
    #[must_use]
    pub const fn words(&self) -> [&'static str; 2] {
        [self.published, self.announced]
    }

    /// Returns which threads the announcer's fence must reach.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }
}
