//! Size classes: a block can be reused for another one of its class.
//!
//! | need: the greater of size and alignment | block | begins at a multiple of |
//! | --- | --- | --- |
//! | up to 63 bytes | 16, 32 or 64 bytes | its size; packed in a line with others of its class |
//! | 64 bytes and more, alignment up to 128 | 1 to 8 lines, then four sizes a doubling | a line |
//! | any, alignment of 256 and more | the next power of two | its size |
//!
//! So rounding up wastes less than a quarter of a block of more than 8 lines, and only addresses:
//! pages that are not touched are not there.

use super::super::LINE;
use super::SLOT;

/// Blocks that are interchangeable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// Below [`CLASSES`].
    pub(super) index: usize,
    /// Of every block of the class.
    pub(super) bytes: usize,
    /// Of the first byte of every block.
    pub(super) align: usize,
}

/// Classes of blocks that share lines.
const PACKED: usize = 3;
/// Classes of 1 to 8 lines.
const LINES: usize = 8;
/// The greatest block is one of these: nothing as long as a slot fits into it.
const LOG_SLOT: usize = SLOT.ilog2() as usize;
/// Four for each doubling from 8 lines to the length of a slot.
const QUARTERS: usize = 4 * (LOG_SLOT - (LINES * LINE).ilog2() as usize);
/// Powers of two from twice a line to half a slot.
const NATURAL: usize = LOG_SLOT - LOG_NATURAL;
const LOG_NATURAL: usize = (2 * LINE).ilog2() as usize;

/// The number of classes.
pub(super) const CLASSES: usize = PACKED + LINES + QUARTERS + NATURAL;

impl Class {
    /// The class of a request; none if a slot could never hold it.
    #[inline]
    pub(super) const fn of(size: usize, align: usize) -> Option<Self> {
        let need = if size > align { size } else { align };
        if need >= SLOT {
            return None;
        }
        if align > LINE {
            let bytes = need.next_power_of_two();
            if bytes >= SLOT {
                return None;
            }
            let index = PACKED + LINES + QUARTERS + bytes.ilog2() as usize - LOG_NATURAL;
            return Some(Self { index, bytes, align: bytes });
        }
        if need < LINE / 2 {
            let (index, bytes) = match need {
                0..=16 => (0, 16),
                17..=32 => (1, 32),
                _ => (2, 64),
            };
            return Some(Self { index, bytes, align: bytes });
        }
        let lines = need.div_ceil(LINE);
        if lines <= LINES {
            return Some(Self { index: PACKED + lines - 1, bytes: lines * LINE, align: LINE });
        }
        // Five to eight quarters of the power of two below: of 8 lines for 9 to 16, of 16 lines for
        // 17 to 32.
        let shift = (lines - 1).ilog2() as usize - 2;
        let quarters = ((lines - 1) >> shift) + 1;
        let index = PACKED + LINES + (shift - 1) * 4 + quarters - 5;
        Some(Self { index, bytes: (quarters << shift) * LINE, align: LINE })
    }

    /// Returns whether its blocks share a line with one another.
    #[inline]
    pub(super) const fn is_packed(self) -> bool {
        self.bytes < LINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_are_as_the_table_says() {
        let of = |size, align| {
            let class = Class::of(size, align).unwrap();
            (class.bytes, class.align)
        };
        assert_eq!(of(0, 1), (16, 16));
        assert_eq!(of(17, 8), (32, 32));
        assert_eq!(of(1, 32), (32, 32));
        assert_eq!(of(63, 8), (64, 64));
        assert_eq!(of(64, 8), (128, 128));
        assert_eq!(of(8, 64), (128, 128));
        assert_eq!(of(8, 128), (128, 128));
        assert_eq!(of(129, 8), (256, 128));
        assert_eq!(of(1_025, 8), (10 * 128, 128));
        assert_eq!(of(2_048, 8), (2_048, 128));
        assert_eq!(of(2_049, 8), (20 * 128, 128));
        assert_eq!(of(8, 4_096), (4_096, 4_096));
        assert_eq!(of(4_097, 4_096), (8_192, 8_192));
        assert_eq!(Class::of(SLOT, 1), None);
        assert_eq!(Class::of(SLOT / 2 + 1, 256), None);
        assert_eq!(Class::of(usize::MAX, 1), None);
    }

    proptest! {
        /// A block is large enough, is aligned, and another class never has its index.
        #[test]
        fn a_class_holds_its_request(size in 0_usize..SLOT, small in 0_usize..5_000, log in 0_u32..13) {
            for size in [size, small] {
                let align = 1 << log;
                let Some(class) = Class::of(size, align) else {
                    prop_assert!(size > SLOT / 2);
                    continue;
                };
                prop_assert!(class.bytes >= size && class.align >= align && class.index < CLASSES);
                prop_assert_eq!(class.bytes % class.align, 0);
                prop_assert_eq!(Class::of(class.bytes.min(SLOT - 1), class.align.min(align.max(LINE))).map(|c| c.bytes >= class.bytes), Some(true));
                if size > 8 * LINE && align <= LINE {
                    prop_assert!(class.bytes - size < size / 4 + LINE);
                }
            }
        }
    }

    /// Growing requests walk through the classes one by one, each with more bytes than the one
    /// before.
    #[test]
    fn indices_are_dense() {
        for align in [8, 256] {
            let mut last = Class::of(0, align).unwrap();
            let mut size = 0;
            while let Some(class) = Class::of(size, align) {
                assert!(
                    class == last || (class.index == last.index + 1 && class.bytes > last.bytes)
                );
                last = class;
                size = class.bytes + 1;
                if class.is_packed() && class.bytes == 64 {
                    size = 64;
                }
            }
            let end = if align == 8 { PACKED + LINES + QUARTERS } else { CLASSES };
            assert_eq!(last.index, end - 1, "{align}");
        }
    }
}
