//! A stack whose pushes and pops may meet elsewhere.
//!
//! A push and a pop that come at the same time cancel out: the stack is the same before and after.
//! So a push that has lost the race for the top leaves its node for a moment in one of several
//! places, and a pop that has lost looks there. If they meet, both are done, and the top was not
//! touched: what is waste in [Treiber's](super::TreiberStack) stack, the time for which a loser
//! stays away, is where the work gets done here.
//!
//! ```text
//!           lost           ┌───────┬───────┬───────┬───────┐           lost
//! push ───────────────────►│ place │ place │ place │   …   │◄─────────────────── pop
//!   │                      └───────┴───────┴───────┴───────┘                      │
//!   └───────────────────────────►    top ──► node ──► …    ◄──────────────────────┘
//! ```
//!
//! How many places are in use adapts: one more when two pushes wanted the same place, one less when
//! an offer found nobody. A pop that finds nothing on the stack does not look for offers; it says
//! so.
//!
//! Why it is not the fastest: on two processors hardly two threads lose at the same time. It needs
//! many processors that do nothing but push and pop.
//!
//! # Invariants
//!
//! 1. A place is null, or a node with a value that belongs to the push which put it there until a
//!    compare-exchange takes it away: the push's own, which then goes on with the node, or a pop's,
//!    which then owns node and value.
//! 2. A push protects its node while it offers it, so that no other offer in the same place can
//!    look like its own.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | offer: exchange a place | Release | the Acquire load of a pop's [`protect`](Operation::protect): the value is there |
//! | take: exchange a place | Relaxed | nobody: the node was acquired |
//! | take back: exchange a place | Relaxed | nobody: nobody has written the node |
//! | `width` | Relaxed | nobody: a guess |
//!
//! Those of the stack are in [`treiber`](super::TreiberStack).
//!
//! Source: Hendler, Shavit, Yerushalmi, "A Scalable Lock-free Stack Algorithm", SPAA 2004. There
//! both sides wait for each other; here only pushes leave something, since a pop has nothing to
//! leave but its wish.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicUsize, Ordering};
use machine::wait::retry_for;
use stanchion_spin::Backoff;

use super::{ConcurrentStack, LinkIn, OperationIn, PointerIn, PopAll, TreiberStack};
use crate::Progress;
use crate::memory::{Hazard, Link, Memory, Operation, Pointer};

/// How many places there are.
const PLACES: usize = machine::sized(16, 1);

/// `width`, one less than the number of places in use, where there are no more.
fn at_most_all(width: usize) -> usize {
    let most = PLACES - 1;
    if width < most { width } else { most }
}

/// Pauses between two looks at a place, in nanoseconds: of the first and of the last.
const PAUSES: core::ops::Range<u64> = 50..800;

/// How often an offer is looked after, and how often a pop looks for one: for about 2 µs.
const LOOKS: u32 = 6;

/// Treiber's stack with elimination, whose nodes `M` takes care of.
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked: an offer is taken back after about 2 µs |
/// | cost | [`TreiberStack`]'s while nobody loses a race |
/// | memory | [`TreiberStack`]'s, and 2 KiB for the places |
///
/// ```
/// use stanchion_lockfree::stack::EliminationStack;
///
/// static STACK: EliminationStack<u64> = EliminationStack::new();
/// let sum: u64 = std::thread::scope(|scope| {
///     let threads = [1, 10].map(|value| {
///         scope.spawn(move || {
///             STACK.push(value);
///             STACK.pop().unwrap_or(0)
///         })
///     });
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// assert_eq!(sum, 11);
/// ```
///
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let stack: stanchion_lockfree::stack::EliminationStack<std::rc::Rc<()>> = Default::default();
/// shared(&stack);
/// ```
pub struct EliminationStack<T, M: Memory = Hazard> {
    stack: TreiberStack<T, M>,
    /// How many places are in use, less one.
    width: CachePadded<AtomicUsize>,
    places: [CachePadded<LinkIn<T, M>>; PLACES],
}

// SAFETY: a value belongs to the structure or to one thread (Invariant 1), and goes from one to the
// other, hence `T: Send`.
unsafe impl<T: Send, M: Memory> Send for EliminationStack<T, M> {}
// SAFETY: as above; nobody gets a shared reference to a value.
unsafe impl<T: Send, M: Memory> Sync for EliminationStack<T, M> {}

impl<T> EliminationStack<T> {
    /// Returns an empty stack, which has not allocated. Its memory is [`Hazard`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_memory(Hazard)
    }
}

impl<T, M: Memory> EliminationStack<T, M> {
    /// Returns an empty stack, which has not allocated, with the memory of the caller's choice.
    #[must_use]
    pub const fn with_memory(memory: M) -> Self {
        Self::over(TreiberStack::with_memory(memory))
    }

    /// Returns an empty stack with the memory of the caller's choice. If that can set room aside,
    /// as [`Counted`](crate::memory::Counted) can, then there is room for `capacity` values. It
    /// grows beyond.
    #[must_use]
    pub fn with_capacity_and_memory(capacity: usize, memory: M) -> Self {
        Self::over(TreiberStack::with_capacity_and_memory(capacity, memory))
    }

    const fn over(stack: TreiberStack<T, M>) -> Self {
        Self {
            stack,
            width: CachePadded::new(AtomicUsize::new(0)),
            places: [const { CachePadded::new(Link::NULL) }; PLACES],
        }
    }

    /// Puts `value` on top.
    pub fn push(&self, value: T) {
        let operation = self.stack.enter();
        let node = operation.allocate(value);
        let mut backoff = Backoff::new();
        loop {
            // SAFETY: the node is owned until a push or an offer succeeds.
            if unsafe { self.stack.try_push(&operation, node) } {
                return;
            }
            // SAFETY: as above.
            if unsafe { self.offer(&operation, node, backoff.failures()) } {
                return;
            }
            backoff.spin();
        }
    }

    /// Takes what is on top.
    pub fn pop(&self) -> Option<T> {
        let operation = self.stack.enter();
        let mut backoff = Backoff::new();
        loop {
            if let Ok(value) = self.stack.try_pop(&operation) {
                return value;
            }
            if let Some(value) = self.accept(&operation, backoff.failures()) {
                return Some(value);
            }
            backoff.spin();
        }
    }

    /// Takes all that is on it in one step; see [`TreiberStack::pop_all`].
    pub fn pop_all(&self) -> PopAll<'_, T, M> {
        self.stack.pop_all()
    }

    /// A place, another one for each thread and try if there are several.
    fn place(&self, failures: u32) -> &LinkIn<T, M> {
        // Relaxed: a guess.
        let width = at_most_all(self.width.load(Ordering::Relaxed)) + 1;
        let thread = machine::thread::index().unwrap_or(0) as u64;
        // The high bits of a product with the golden ratio are spread evenly.
        let spread = (thread << 8 | u64::from(failures)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.places[(spread as usize * width) >> 32]
    }

    /// Offers a node to pops for a while, and says whether one has taken it.
    ///
    /// # Safety
    ///
    /// The node is owned, and has a value. It is not owned any more if this succeeds.
    #[cold]
    unsafe fn offer(
        &self,
        operation: &OperationIn<'_, T, M>,
        node: PointerIn<T, M>,
        failures: u32,
    ) -> bool {
        let place = self.place(failures);
        // Relaxed: it is only compared.
        let free = place.load(Ordering::Relaxed);
        // Nobody uses the node again while it is announced, so it cannot come back here (Invariant
        // 2).
        operation.announce(1, node);
        // Release: pairs with the Acquire of a pop. Relaxed: the place is not looked into.
        if !free.is_null()
            || !place.compare_exchange(free, node, Ordering::Release, Ordering::Relaxed)
        {
            self.adapt(1);
            return false;
        }
        let offered = LinkIn::<T, M>::after(free, node);
        let mut looks = 0;
        let taken = retry_for(
            // Relaxed: who has taken it says nothing more.
            || (place.load(Ordering::Relaxed) != offered).then_some(()),
            PAUSES,
            || {
                looks += 1;
                looks < LOOKS
            },
        );
        if taken.is_some() {
            return true;
        }
        // Relaxed, both: nobody has written the node; and if it is taken, nothing of it is wanted
        // any more.
        let null = <M::Store<T> as crate::memory::Store<T>>::NULL;
        let back = place.compare_exchange(offered, null, Ordering::Relaxed, Ordering::Relaxed);
        if back {
            self.adapt(-1);
        }
        !back
    }

    /// Looks for an offer for a while.
    #[cold]
    fn accept(&self, operation: &OperationIn<'_, T, M>, failures: u32) -> Option<T> {
        let place = self.place(failures);
        let mut looks = 0;
        retry_for(
            // Relaxed: `protect` loads it again.
            || (!place.load(Ordering::Relaxed).is_null()).then_some(()),
            PAUSES,
            || {
                looks += 1;
                looks < LOOKS
            },
        )?;
        let node = operation.protect(1, place);
        if node.is_null() {
            return None;
        }
        // SAFETY: the node is protected.
        let slot = unsafe { operation.slot(node) };
        let null = <M::Store<T> as crate::memory::Store<T>>::NULL;
        // Relaxed, both: `protect` has acquired the node; or it is somebody else's.
        if !place.compare_exchange(node, null, Ordering::Relaxed, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the exchange gave this thread node and value (Invariant 1).
        let value = unsafe { operation.take(slot) };
        // SAFETY: as above; the place was the only way to it.
        unsafe { operation.retire(node, slot) };
        Some(value)
    }

    /// Uses one place more, or one less.
    fn adapt(&self, by: isize) {
        // Relaxed, both: a guess; an update that is lost does no harm.
        let width = self.width.load(Ordering::Relaxed);
        let new = at_most_all(width.saturating_add_signed(by));
        if new != width {
            self.width.store(new, Ordering::Relaxed);
        }
    }

    /// Whether there is nothing on it. A value that a push offers is not on it yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}

impl<T, M: Memory> ConcurrentStack for EliminationStack<T, M> {
    type Item = T;

    const PROGRESS: Progress = Progress::LockFree;

    fn push(&self, value: T) {
        self.push(value);
    }

    fn pop(&self) -> Option<T> {
        self.pop()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

conveniences! {
    impl[T, M: Memory] EliminationStack<T, M>;
    item: T;
    take: |stack| stack.pop();
    take_mut: |stack| stack.pop_mut();
    put: |stack, value| stack.push(value);
    new: EliminationStack::with_memory(M::default());
    debug: |stack| is_empty = stack.is_empty();
}

exclusive! {
    impl[T, M: Memory] EliminationStack<T, M>;
    value: T;
    push_mut: |stack, value| stack.stack.push_mut(value);
    pop_mut: |stack| stack.stack.pop_mut();
    peek_mut: |stack| stack.stack.peek_mut();
    cost: "Needs no exchange of its own, and announces nothing; the memory's cost stays.";
}
