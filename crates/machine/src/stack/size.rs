//! The sizes of a stack and of its guard: whole pages, and sums that cannot overflow.

use super::backend::page;
use super::{Head, StackError};

/// Pages of a guard by default; the header of [`stack`](super) says why.
const GUARD: usize = 4;

/// The number of different offsets at which the stacks of a slab begin, in turn.
const COLOURS: usize = 16;

/// The size of a stack and of its guard in bytes, both whole pages.
///
/// ```
/// use stanchion_machine::stack::Size;
///
/// assert_eq!(Size::of(0)?.bytes(), Size::LEAST);
/// assert_eq!(Size::of(100_000)?.with_guard(1)?.bytes() % 4096, 0);
/// println!("{}", Size::of(usize::MAX).unwrap_err());
/// # Ok::<(), stanchion_machine::stack::StackError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Bytes of the stack, without its guard.
    bytes: usize,
    /// Bytes of the guard below the stack.
    guard: usize,
}

impl Size {
    /// The smallest stack: 16 KiB. A smaller size is rounded up, because address space costs
    /// nothing and a thread that panics needs some stack.
    pub const LEAST: usize = 16 << 10;

    /// The largest stack: 64 GiB, and 256 MiB where addresses have 32 bits.
    pub const MOST: usize = if usize::BITS > 32 { 1 << (usize::BITS - 28) } else { 256 << 20 };

    /// Returns the size of a stack of `bytes`, rounded up to pages, with four pages of guard.
    ///
    /// Of the stack, 64 to 1024 bytes hold the thread's name and keep stacks apart in the caches.
    ///
    /// # Errors
    ///
    /// [`StackError::TooLarge`] above [`MOST`](Self::MOST).
    pub fn of(bytes: usize) -> Result<Self, StackError> {
        Ok(Self { bytes: whole(bytes.max(Self::LEAST))?, guard: GUARD * page() })
    }

    /// Returns the same stack with a guard of `bytes`, rounded up to pages, at least one.
    ///
    /// # Errors
    ///
    /// [`StackError::TooLarge`] above [`MOST`](Self::MOST).
    pub fn with_guard(self, bytes: usize) -> Result<Self, StackError> {
        Ok(Self { guard: whole(bytes.max(1))?, ..self })
    }

    /// Returns a size of parts that were checked before.
    #[cfg_attr(not(unix), allow(dead_code, reason = "elsewhere no table has sizes"))]
    pub(crate) const fn recorded(bytes: usize, guard: usize) -> Self {
        Self { bytes, guard }
    }

    /// Returns the bytes of the stack, without its guard.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// Returns the bytes of the guard below it.
    #[must_use]
    pub const fn guard(self) -> usize {
        self.guard
    }

    /// Returns the distance in bytes from one stack to the next.
    #[must_use]
    pub const fn stride(self) -> usize {
        self.bytes + self.guard
    }

    /// Returns the offset of the head of stack `number` from the beginning of its slab.
    pub(crate) const fn head_of(self, number: usize) -> usize {
        (number + 1) * self.stride() - (number % COLOURS + 1) * size_of::<Head>()
    }
}

/// Rounds `bytes` up to whole pages.
fn whole(bytes: usize) -> Result<usize, StackError> {
    if bytes > Size::MOST {
        return Err(StackError::TooLarge { asked: bytes, most: Size::MOST });
    }
    Ok(bytes.next_multiple_of(page()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_pages_and_never_less_than_asked() {
        for asked in [0, 1, 4095, 16384, 16385, 50_001, 65_536, 1 << 20, Size::MOST - 1, Size::MOST]
        {
            let size = Size::of(asked).unwrap();
            assert!(size.bytes() >= asked.max(Size::LEAST), "{asked}: {size:?}");
            assert!(size.bytes() < asked.max(Size::LEAST) + page(), "{asked}: {size:?}");
            assert_eq!((size.bytes() % page(), size.guard()), (0, GUARD * page()), "{asked}");
        }
    }

    #[test]
    fn an_absurd_size_is_refused_and_the_mend_named() {
        for asked in [Size::MOST + 1, usize::MAX - 1, usize::MAX] {
            let error = Size::of(asked).unwrap_err();
            assert_eq!(error, StackError::TooLarge { asked, most: Size::MOST });
            let text = std::string::ToString::to_string(&error);
            assert!(
                text.contains(&std::format!("{asked} bytes")) && text.contains("ask for"),
                "{text}"
            );
            assert_eq!(Size::of(1).unwrap().with_guard(asked), Err(error));
        }
    }

    #[test]
    fn heads_lie_in_their_stacks_on_lines_of_their_own() {
        let size = Size::of(1).unwrap().with_guard(1).unwrap();
        for number in 0..3 * COLOURS {
            let (head, end) = (size.head_of(number), (number + 1) * size.stride());
            assert!(head >= end - 1024 && head + size_of::<Head>() <= end, "{number}");
            assert_eq!(head % 64, 0);
        }
    }
}
