//! Addresses as numbers that are the same on every run.
//!
//! | bits | of a word of the slot | of foreign memory |
//! | --- | --- | --- |
//! | 63 | 0 | 1 |
//! | 62 to 12 | offset in the slot | number of its 128 bytes, by their first touch |
//! | 11 to 0 | offset in the slot | offset in the 128 bytes |
//!
//! Foreign blocks are 4 KiB apart. So no line of up to 4 KiB holds two of them that only happened
//! to be touched one after the other.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;

use super::reserved::SLOT;
use super::{LINE, Slot};

/// The number of foreign blocks that are found without the map.
const RECENT: usize = 256;
/// Bits of an identity below a foreign block's number.
const APART: u32 = 12;
const FOREIGN: u64 = 1 << 63;

/// The identities of one run's words.
///
/// Of a word in the slot: one subtraction. Of a foreign one: a look into a table, seldom into a
/// map.
#[derive(Debug)]
pub(crate) struct Identities {
    /// The beginning of the slot.
    base: usize,
    /// Blocks by the low bits of their address, with their numbers. No block is 0: nothing is at
    /// address 0.
    recent: Box<[(usize, u64); RECENT]>,
    /// The numbers of the foreign blocks, by address.
    numbers: HashMap<usize, u64, BuildHasherDefault<Spread>>,
}

impl Identities {
    /// Returns the identities for a run with `slot` as its memory.
    pub(crate) fn new(slot: &Slot) -> Self {
        Self { base: slot.base(), recent: Box::new([(0, 0); RECENT]), numbers: HashMap::default() }
    }

    /// The identity of the word at an address.
    #[inline]
    pub(crate) fn of(&mut self, address: *const ()) -> u64 {
        let offset = address.addr().wrapping_sub(self.base);
        if offset < SLOT { offset as u64 } else { self.foreign(address.addr()) }
    }

    fn foreign(&mut self, address: usize) -> u64 {
        let block = address / LINE;
        let recent = &mut self.recent[block % RECENT];
        if recent.0 != block {
            let next = self.numbers.len() as u64;
            *recent = (block, *self.numbers.entry(block).or_insert(next));
        }
        FOREIGN | recent.1 << APART | (address % LINE) as u64
    }
}

/// The word's location, short: its offset in the run's memory, or block and byte outside.
pub(crate) fn location(identity: u64) -> String {
    if identity & FOREIGN == 0 {
        return format!("at {identity:#x}");
    }
    let (block, byte) = ((identity & !FOREIGN) >> APART, identity & ((1 << APART) - 1));
    format!("outside, block {block} byte {byte}")
}

/// The word in words, for a report.
pub(crate) fn name(identity: u64) -> String {
    if identity & FOREIGN == 0 {
        return format!("the word at {identity:#x} of the run's memory");
    }
    let (block, byte) = ((identity & !FOREIGN) >> APART, identity & ((1 << APART) - 1));
    format!("the static (or what was made before the run) at byte {byte} of block {block}")
}

/// A hash for numbers of blocks. They need no keyed hash: no adversary chooses them to collide, and
/// the map is never walked.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }

    fn write_usize(&mut self, block: usize) {
        // The golden ratio in 64 bits; the map takes the high bits as well as the low ones.
        let mixed = (self.0 ^ block as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::without_provenance;

    #[test]
    fn a_word_of_the_slot_is_its_offset() {
        let slot = Slot::take().unwrap();
        let mut identities = Identities::new(&slot);
        assert_eq!(identities.of(without_provenance(slot.base() + 4_000)), 4_000);
        assert_eq!(identities.of(without_provenance(slot.base() + SLOT - 8)), SLOT as u64 - 8);
        assert_eq!(identities.of(without_provenance(slot.base() + SLOT)), FOREIGN);
    }

    #[test]
    fn foreign_blocks_are_numbered_in_the_order_of_their_first_touch() {
        let slot = Slot::take().unwrap();
        let mut identities = Identities::new(&slot);
        let mut of = |address: usize| identities.of(without_provenance(address));
        // More blocks than the table holds, in an order that is not theirs, each seen twice.
        let blocks: Vec<usize> = (0..1_000).map(|i| (1 << 20) + i * 37 % 1_000 * LINE).collect();
        for _ in 0..2 {
            for (number, &block) in blocks.iter().enumerate() {
                assert_eq!(of(block + 24), FOREIGN | (number << APART | 24) as u64);
            }
        }
        assert_eq!(of(blocks[7] + LINE - 1), FOREIGN | (7 << APART | (LINE - 1)) as u64);
    }
}
