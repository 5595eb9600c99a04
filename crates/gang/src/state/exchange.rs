//! The exchange buffers: a member writes the value that it hands to the others before a barrier,
//! and reads theirs after it.
//!
//! Each member has two buffers, used in turn. One crossing is then enough for an exchange. A buffer
//! is written again in the exchange after the next. To come there its owner has crossed a barrier
//! at which all members have arrived that had read it.
//!
//! Why not hand over a pointer to the value on the giver's stack, which would save large values a
//! copy: if the gang ends meanwhile, the giver returns while others read.
//!
//! # Invariants
//!
//! 1. Exchange k writes the buffers of parity k before the crossing of phase k. It reads them after
//!    that crossing and before it arrives for phase k + 1.
//! 2. A member that has failed to cross stays in its exchange. It may write its buffer again,
//!    which no member reads.

use core::any::{Any, TypeId};
use core::mem::MaybeUninit;

use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::topology::CachePadded;

use crate::data::Data;

/// Values up to this size, in bytes, are written into the buffer itself. Larger ones are boxed.
const INLINE: usize = 64;

#[repr(C, align(16))]
struct InlineBytes(MaybeUninit<[u8; INLINE]>);

/// The contents of a buffer. Its member writes them.
struct Contents {
    /// The exchange in which the buffer was written, and the type of the value.
    written: Option<(u64, TypeId)>,
    /// The value, if it is small.
    bytes: InlineBytes,
    /// The value, if it is large, or the list.
    boxed: Option<Box<dyn Any + Send + Sync>>,
}

impl Contents {
    /// Returns the large value or the list that was written in exchange `phase` by `member`.
    fn boxed<T: 'static>(&self, member: usize, phase: u64) -> &T {
        self.check::<T>(member, phase);
        self.boxed.as_ref().and_then(|boxed| boxed.downcast_ref()).expect("checked")
    }

    fn check<T: 'static>(&self, member: usize, phase: u64) {
        assert!(
            self.written == Some((phase, TypeId::of::<T>())),
            "member {member} has given nothing of this type: all members of a gang must call the same operations in the same order",
        );
    }
}

struct Buffer(UnsafeCell<Contents>);

// SAFETY: the contents are `Send` and `Sync`, and are written and read in turns (Invariant 1).
unsafe impl Sync for Buffer {}
// SAFETY: the contents are `Send`.
unsafe impl Send for Buffer {}

/// The buffers of a gang.
pub struct ExchangeBuffers {
    /// Two for each member, one after the other.
    buffers: Box<[CachePadded<Buffer>]>,
}

const fn is_inline<T>() -> bool {
    size_of::<T>() <= INLINE && align_of::<T>() <= align_of::<InlineBytes>()
}

impl ExchangeBuffers {
    /// Creates the buffers of a gang.
    pub fn new(members: usize) -> Self {
        let buffer = |_| {
            let bytes = InlineBytes(MaybeUninit::uninit());
            let contents = Contents { written: None, bytes, boxed: None };
            CachePadded::new(Buffer(UnsafeCell::new(contents)))
        };
        Self { buffers: (0..2 * members).map(buffer).collect() }
    }

    fn buffer(&self, member: usize, phase: u64) -> &UnsafeCell<Contents> {
        &self.buffers[2 * member + (phase % 2) as usize].0
    }

    /// Writes `value` into the buffer of `member`.
    ///
    /// # Safety
    ///
    /// The caller is the member. It has crossed all phases before `phase`, and has not arrived for
    /// `phase`.
    pub unsafe fn write<T: Data>(&self, member: usize, phase: u64, value: T) {
        if !is_inline::<T>() {
            // SAFETY: as the caller promises.
            return unsafe { self.write_boxed(member, phase, value) };
        }
        // SAFETY: no other thread reads or writes this buffer now (Invariant 1).
        self.buffer(member, phase).with_mut(|contents| {
            // SAFETY: as above.
            let contents = unsafe { &mut *contents };
            contents.written = Some((phase, TypeId::of::<T>()));
            let bytes = (&raw mut contents.bytes).cast::<T>();
            // SAFETY: there is room for it, and it is aligned.
            unsafe { bytes.write(value) };
        });
    }

    /// Writes `list` into the buffer of `member`.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write).
    pub unsafe fn write_list<T: Data>(&self, member: usize, phase: u64, list: Vec<T>) {
        // SAFETY: as the caller promises.
        unsafe { self.write_boxed(member, phase, list) };
    }

    /// # Safety
    ///
    /// As for [`write`](Self::write).
    unsafe fn write_boxed<T: Any + Send + Sync>(&self, member: usize, phase: u64, value: T) {
        self.buffer(member, phase).with_mut(|contents| {
            // SAFETY: as in `write`.
            let contents = unsafe { &mut *contents };
            contents.written = Some((phase, TypeId::of::<T>()));
            contents.boxed = Some(Box::new(value));
        });
    }

    /// Returns the value that `member` has written.
    ///
    /// # Panics
    ///
    /// If the member has written nothing in this exchange, or a value of another type. Then the
    /// members have not called the same operations in the same order.
    ///
    /// # Safety
    ///
    /// The caller has crossed `phase`, and has not arrived for the next one.
    pub unsafe fn read<T: Data>(&self, member: usize, phase: u64) -> T {
        self.buffer(member, phase).with(|contents| {
            // SAFETY: no thread writes this buffer now (Invariant 1).
            let contents = unsafe { &*contents };
            if !is_inline::<T>() {
                return *contents.boxed::<T>(member, phase);
            }
            contents.check::<T>(member, phase);
            let bytes = (&raw const contents.bytes).cast::<T>();
            // SAFETY: a value of this type was written there, in this exchange.
            unsafe { bytes.read() }
        })
    }

    /// Calls `read` with the list that `member` has written.
    ///
    /// # Panics
    ///
    /// As [`read`](Self::read).
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    pub unsafe fn read_list<T: Data, R>(
        &self,
        member: usize,
        phase: u64,
        read: impl FnOnce(&[T]) -> R,
    ) -> R {
        self.buffer(member, phase).with(|contents| {
            // SAFETY: as in `read`.
            let contents = unsafe { &*contents };
            read(contents.boxed::<Vec<T>>(member, phase))
        })
    }
}
