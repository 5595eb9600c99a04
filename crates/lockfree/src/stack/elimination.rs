//! A stack where a push and a pop may meet away from the top.
//!
//! A push and a pop that come at the same time cancel out: the stack is the same before and after.
//! So a push that has lost the race for the top leaves its node for a moment in one of several
//! exchangers, and a pop that has lost looks there. If they meet, both are done, and the top was
//! not touched. In [Treiber's](super::TreiberStack) stack a loser wastes the time for which it
//! stays away. Here the work gets done in that time.
//!
//! ```text
//!           lost         ┌───────────┬───────────┬───────────┬───┐         lost
//! push ─────────────────►│ exchanger │ exchanger │ exchanger │ … │◄────────────── pop
//!   │                    └───────────┴───────────┴───────────┴───┘                 │
//!   └───────────────────────────►    top ──► node ──► …    ◄───────────────────────┘
//! ```
//!
//! The number of exchangers in use adapts: one more when two pushes wanted the same one, one less
//! when no pop came for an offer. A pop that finds nothing on the stack does not look for offers;
//! it returns `None`.
//!
//! Why it is not the fastest: on two processors hardly two threads lose at the same time. It needs
//! many processors that do nothing but push and pop.
//!
//! # Invariants
//!
//! 1. An exchanger is null, or a node with a value. The node belongs to the push that put it there
//!    until a compare-exchange takes it away. If that is the push's own, the push goes on with the
//!    node. If it is a pop's, the pop owns node and value.
//! 2. A push protects its node while it offers it, so that no other offer in the same exchanger can
//!    look like its own.
//!
//! # Orderings
//!
//! - **Offer** (exchange of an exchanger): Release. The partner is the Acquire load of a pop's
//!   [`protect`](Operation::protect): the value is there.
//! - **Take** (exchange of an exchanger): Relaxed, without a partner. The node was acquired.
//! - **Take back** (exchange of an exchanger): Relaxed, without a partner. No other thread has
//!   written the node.
//! - **`width`**: Relaxed, without a partner. It is a guess.
//!
//! Those of the stack are in [`treiber`](super::TreiberStack).
//!
//! Source: Hendler, Shavit, Yerushalmi, "A Scalable Lock-free Stack Algorithm", SPAA 2004. There
//! both sides wait for each other. Here only pushes leave something, since a pop has nothing to
//! leave but its wish.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicUsize, Ordering};
use stanchion_machine::wait::{retry_for, transfers};
use stanchion_spin::Backoff;

use super::{LinkIn, OperationIn, PointerIn, PopAll, TreiberStack};
use crate::Progress;
use crate::memory::{Hazard, Link, Memory, Operation, Pointer};

/// The number of exchangers.
const EXCHANGERS: usize = stanchion_machine::sized(16, 1);

/// Returns `width`, but at most the number of exchangers less one.
fn at_most_all(width: usize) -> usize {
    let most = EXCHANGERS - 1;
    if width < most { width } else { most }
}

/// The first and the longest pause between two looks at an exchanger, in transfers of a line. A
/// partner that has lost a race comes after a few.
const PAUSES_TRANSFERS: [u64; 2] = [2, 32];

/// The number of looks of a push after its offer, and of a pop for one: for some 90 transfers.
const LOOKS: u32 = 6;

/// Treiber's stack with elimination, with nodes in memory `M`.
///
/// - Progress: [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked. An
///   offer is taken back after some 90 transfers of a line.
/// - Cost: that of [`TreiberStack`] while no thread loses a race.
/// - Memory: that of [`TreiberStack`], and 2 KiB for the exchangers.
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
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let stack: stanchion_lockfree::stack::EliminationStack<std::rc::Rc<()>> = Default::default();
/// shared(&stack);
/// ```
pub struct EliminationStack<T, M: Memory = Hazard> {
    /// The stack proper.
    stack: TreiberStack<T, M>,
    /// The number of exchangers in use, less one. Written by threads that lose.
    width: CachePadded<AtomicUsize>,
    /// The exchangers: each holds an offered node, or null. Written by pushes and pops that lose.
    exchangers: [CachePadded<LinkIn<T, M>>; EXCHANGERS],
}

// SAFETY: a value belongs to the structure or to one thread (Invariant 1), and goes from one to the
// other, hence `T: Send`.
unsafe impl<T: Send, M: Memory> Send for EliminationStack<T, M> {}
// SAFETY: as above; no thread gets a shared reference to a value.
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
            exchangers: [const { CachePadded::new(Link::NULL) }; EXCHANGERS],
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

    /// Takes the value on top.
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

    /// Takes all values that are on it in one step; see [`TreiberStack::pop_all`].
    pub fn pop_all(&self) -> PopAll<'_, T, M> {
        self.stack.pop_all()
    }

    /// Returns an exchanger: another one for each thread and try if there are several.
    fn exchanger(&self, failures: u32) -> &LinkIn<T, M> {
        // Relaxed: a guess.
        let width = at_most_all(self.width.load(Ordering::Relaxed)) + 1;
        let thread = stanchion_machine::thread::index().unwrap_or(0) as u64;
        // The high bits of a product with the golden ratio are spread evenly.
        let spread = (thread << 8 | u64::from(failures)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.exchangers[(spread as usize * width) >> 32]
    }

    /// Offers a node to pops for a while, and returns whether one has taken it.
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
        let exchanger = self.exchanger(failures);
        // Relaxed: it is only compared.
        let free = exchanger.load(Ordering::Relaxed);
        // No thread uses the node again while it is announced, so it cannot come back here
        // (Invariant 2).
        operation.announce(1, node);
        // Release: pairs with the Acquire of a pop. Relaxed: the offer that is there is not looked
        // at.
        if !free.is_null()
            || !exchanger.compare_exchange(free, node, Ordering::Release, Ordering::Relaxed)
        {
            self.adapt(1);
            return false;
        }
        let offered = LinkIn::<T, M>::after(free, node);
        let mut looks = 0;
        let taken = retry_for(
            // Relaxed: the pop that has taken it passes nothing on.
            || (exchanger.load(Ordering::Relaxed) != offered).then_some(()),
            transfers(PAUSES_TRANSFERS[0])..transfers(PAUSES_TRANSFERS[1]),
            || {
                looks += 1;
                looks < LOOKS
            },
        );
        if taken.is_some() {
            return true;
        }
        // Relaxed, both: no other thread has written the node. If it is taken, this push does not
        // look at it any more.
        let null = <M::Store<T> as crate::memory::Store<T>>::NULL;
        let back = exchanger.compare_exchange(offered, null, Ordering::Relaxed, Ordering::Relaxed);
        if back {
            self.adapt(-1);
        }
        !back
    }

    /// Looks for an offer for a while.
    #[cold]
    fn accept(&self, operation: &OperationIn<'_, T, M>, failures: u32) -> Option<T> {
        let exchanger = self.exchanger(failures);
        let mut looks = 0;
        retry_for(
            // Relaxed: `protect` loads it again.
            || (!exchanger.load(Ordering::Relaxed).is_null()).then_some(()),
            transfers(PAUSES_TRANSFERS[0])..transfers(PAUSES_TRANSFERS[1]),
            || {
                looks += 1;
                looks < LOOKS
            },
        )?;
        let node = operation.protect(1, exchanger);
        if node.is_null() {
            return None;
        }
        // SAFETY: the node is protected.
        let slot = unsafe { operation.slot(node) };
        let null = <M::Store<T> as crate::memory::Store<T>>::NULL;
        // Relaxed, both: `protect` has acquired the node. On failure it belongs to another thread.
        if !exchanger.compare_exchange(node, null, Ordering::Relaxed, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the exchange gave this thread node and value (Invariant 1).
        let value = unsafe { operation.take(slot) };
        // SAFETY: as above; the exchanger was the only way to it.
        unsafe { operation.retire(node, slot) };
        Some(value)
    }

    /// Uses one exchanger more, or one less.
    fn adapt(&self, by: isize) {
        // Relaxed, both: a guess. A lost update does no harm.
        let width = self.width.load(Ordering::Relaxed);
        let new = at_most_all(width.saturating_add_signed(by));
        if new != width {
            self.width.store(new, Ordering::Relaxed);
        }
    }

    /// Returns whether there is nothing on it. A value that a push offers is not on it yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}

forward! {
    impl[T, M: Memory] ConcurrentStack for EliminationStack<T, M>;
    item: T;
    progress: Progress::LockFree;
}

conveniences! {
    impl[T, M: Memory] EliminationStack<T, M>;
    value: T;
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
