//! Load-linked, validate, store-conditional: a store that happens only if no thread has stored
//! since.
//!
//! Herlihy's methodology and half of the algorithms of the field are written with these three. A
//! compare-exchange looks at the *value*, so a word that has gone from A to B and back to A
//! deceives it (ABA). A store-conditional looks at whether there *was a store*.
//!
//! Why not the processor's own LL/SC: x86 has none. On processors that have it (ARM, RISC-V,
//! POWER), a program may do next to nothing between the two. Another access to memory may break the
//! link every time, and in Rust there is no way to make sure that the compiler puts none there.
//! There is also no validate. So the link is made of a compare-exchange on a word of 64 bits, with
//! a count of the stores beside the value:
//!
//! ```text
//! bit   63                        32 31                         0
//!      +----------------------------+----------------------------+
//!      | tag: stores so far, mod 2^32 |          value           |
//!      +----------------------------+----------------------------+
//! ```
//!
//! | | x86 hardware | ARM's LDXR, STXR | this cell |
//! | --- | --- | --- | --- |
//! | validate | - | no | one load |
//! | work in between | - | a few instructions, no access to memory | any |
//! | several links of one thread at once | - | no | yes |
//! | fails for no reason | - | yes | no |
//! | is deceived | - | no | after a multiple of 2^32 stores |
//!
//! The cell is deceived if that many stores happen between load and store: 86 s at 50 million a
//! second.
//!
//! # Invariants
//!
//! 1. Each successful store-conditional adds one to the tag, modulo 2^32. Nothing else writes the
//!    word.
//! 2. So if a word equals a link's, no store happened since the link was loaded, or a multiple of
//!    2^32 of them.
//!
//! # Orderings
//!
//! - **Load-linked**: Acquire. It pairs with the store-conditional that wrote the value: the
//!   loading thread sees everything that the storing thread did before.
//! - **Store-conditional**: Release. It pairs with load-linked.
//! - **After a store-conditional**: a Release fence. It pairs with validate's fence.
//! - **Before validate's load**: an Acquire fence. It pairs with the fence above.
//!
//! The fences are for blocks that are used again. Thread A links to the number of a block, and
//! reads the block. Thread B stores another number and fills the block anew. If A has read a word
//! that B wrote after its store, then B's fence was before A's. So A's validate sees B's store, and
//! A does not believe the words that it has read. The block's words are atomic, read and written
//! Relaxed.
//!
//! Source: the operations are from Herlihy, TOPLAS 15(5), 1993. Making them of a compare-exchange
//! and a counter is from Michael and Scott 1998, section 2, and goes back to the IBM System/370's
//! manual of 1983.

use core::fmt;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering, fence};

/// A word that is loaded with a link. A store through the link happens only if no other thread has
/// stored meanwhile.
///
/// | | |
/// | --- | --- |
/// | [`load_linked`](Self::load_linked) | a load |
/// | [`Link::validate`] | a fence that costs nothing on x86, and a load |
/// | [`Link::store_conditional`] | a compare-exchange |
/// | progress | wait-free, each of them. A loop around them is lock-free |
/// | size | 8 bytes |
/// | wraps around | the tag, after 2^32 stores |
///
/// A thread that stands still between load and store for exactly a multiple of 2^32 stores is
/// deceived.
///
/// ```
/// use stanchion_lockfree::LinkedCell;
///
/// let cell = LinkedCell::new(7);
/// let first = cell.load_linked();
/// let second = cell.load_linked();
/// assert!(first.store_conditional(8));
/// // The same value as before. But the cell was stored to.
/// assert!(cell.load_linked().store_conditional(7));
/// assert_eq!(cell.load(), second.value());
/// assert!(!second.validate());
/// assert!(!second.store_conditional(9));
/// assert_eq!(cell.load(), 7);
/// ```
pub struct LinkedCell {
    /// The tag and the value. Written by every successful store-conditional.
    word: AtomicU64,
}

/// A value that [`LinkedCell::load_linked`] has seen, and the right to store if it is still the
/// last.
///
/// It is a note, not a reservation: it keeps no thread waiting. It may be kept for any time,
/// copied, and dropped.
#[derive(Clone, Copy)]
#[must_use = "a link that is neither stored through nor validated was loaded in vain; `load` gives just the value"]
pub struct Link<'c> {
    /// The cell that the link was loaded from.
    cell: &'c LinkedCell,
    /// The cell's word at that time.
    word: u64,
}

/// One in the tag.
const TAG: u64 = 1 << 32;

impl LinkedCell {
    /// Returns a cell with `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self { word: AtomicU64::new(value as u64) }
    }

    /// Returns the value, without a link.
    #[inline]
    #[must_use]
    pub fn load(&self) -> u32 {
        self.load_linked().value()
    }

    /// Returns the value with a link to it.
    ///
    /// Everything that the storing thread did before the store happened before this load.
    #[inline]
    pub fn load_linked(&self) -> Link<'_> {
        // Acquire: pairs with the Release of the store-conditional that wrote it.
        Link { cell: self, word: self.word.load(Ordering::Acquire) }
    }
}

impl Link<'_> {
    /// Returns the value that was loaded.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u32 {
        // The lower half.
        self.word as u32
    }

    /// Returns whether no thread has stored since the link was loaded.
    ///
    /// If none has, then no data that the caller has read since then was written by a thread that
    /// stored *first* and wrote then. So a block that only changes once the cell names another
    /// block can be read while it may be used again, and believed after this.
    #[inline]
    #[must_use]
    pub fn validate(self) -> bool {
        // Acquire: the reads before it pair with the Release fence of a thread that wrote them
        // after a store.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        self.cell.word.load(Ordering::Relaxed) == self.word
    }

    /// Stores `value` if no thread has stored since the link was loaded. Returns whether it did. It
    /// never fails for another reason.
    ///
    /// A thread that loads the value sees everything that the caller did before. The caller's
    /// writes after a success are seen only by threads that find that their earlier links no longer
    /// [validate](Self::validate).
    #[inline]
    #[must_use = "a store-conditional may have stored nothing"]
    pub fn store_conditional(self, value: u32) -> bool {
        let tag = (self.word & !(TAG - 1)).wrapping_add(TAG);
        // Release: pairs with the Acquire of `load_linked`. Relaxed on failure: the word that is
        // there instead is not used.
        let stored = self.cell.word.compare_exchange(
            self.word,
            tag | u64::from(value),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if stored.is_ok() {
            // Release: for every thread that validates, the writes that follow come after the
            // store.
            fence(Ordering::Release);
        }
        stored.is_ok()
    }
}

impl Fresh for LinkedCell {
    type Value = u32;

    fn fresh(value: u32) -> Self {
        Self { word: AtomicU64::fresh(u64::from(value)) }
    }
}

impl Default for LinkedCell {
    fn default() -> Self {
        Self::new(0)
    }
}

impl From<u32> for LinkedCell {
    fn from(value: u32) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for LinkedCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkedCell").field(&self.load()).finish()
    }
}

impl fmt::Debug for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("value", &self.value()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_breaks_every_other_link_whatever_it_stores() {
        let cell = LinkedCell::new(u32::MAX);
        let links = [(); 3].map(|()| cell.load_linked());
        assert!(links.iter().all(|link| link.validate()));
        assert!(links[0].store_conditional(u32::MAX));
        assert!(links.iter().all(|link| !link.validate()));
        assert!(!links[0].store_conditional(1), "a link is good for one store");
        assert!(!links[1].store_conditional(1));
        assert_eq!(cell.load(), u32::MAX);
    }

    #[test]
    fn the_tag_wraps_around_and_leaves_the_value_alone() {
        let cell = LinkedCell { word: AtomicU64::new(u64::MAX) };
        let last = cell.load_linked();
        assert_eq!(last.value(), u32::MAX);
        assert!(last.store_conditional(5));
        assert_eq!(cell.load(), 5);
        assert!(!last.validate());
        // The tag is 0 now. 2^32 stores ago it was as well, and a link of that time would hold
        // again. The docs say so.
        assert!(Link { cell: &cell, word: 5 }.validate());
    }
}
