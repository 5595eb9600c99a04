//! The board: where members put what they hand each other, before a barrier, and read what others have put, after it.
//!
//! Each member has two places, used in turn. One crossing is then enough for an exchange: a place is written again in the exchange after the next, and
//! to come there its owner has crossed a barrier at which all have arrived who had read it.
//!
//! Why not hand a pointer to the value on the giver's stack, which would save large values a copy: if the gang ends meanwhile, the giver returns while
//! others read.
//!
//! # Invariants
//!
//! 1. Exchange k writes the places of parity k, before the crossing of phase k. It reads them after that crossing and before arriving for phase k + 1.
//! 2. A member whose crossing has failed stays in its exchange: it may write its place again, which nobody reads.

use core::any::{Any, TypeId};
use core::mem::MaybeUninit;

use machine::cell::UnsafeCell;
use machine::topology::CachePadded;

use crate::data::Data;

/// Values up to this size, in bytes, are put on the board as they are; larger ones are boxed.
const INLINE: usize = 64;

#[repr(C, align(16))]
struct InlineBytes(MaybeUninit<[u8; INLINE]>);

/// What lies in a place.
struct Contents {
    /// In which exchange it was put there, and of what type it is.
    written: Option<(u64, TypeId)>,
    bytes: InlineBytes,
    boxed: Option<Box<dyn Any + Send + Sync>>,
}

struct Buffer(UnsafeCell<Contents>);

// SAFETY: what is posted is `Send` and `Sync`, and places are written and read in turns (Invariant 1).
unsafe impl Sync for Buffer {}
// SAFETY: what is posted is `Send`.
unsafe impl Send for Buffer {}

pub struct ExchangeBuffers {
    buffers: Box<[CachePadded<Buffer>]>,
}

impl ExchangeBuffers {
    pub fn new(members: usize) -> Self {
        let buffer = |_| {
            let bytes = InlineBytes(MaybeUninit::uninit());
            CachePadded::new(Buffer(UnsafeCell::new(Contents {
                written: None,
                bytes,
                boxed: None,
            })))
        };
        Self { buffers: (0..2 * members).map(buffer).collect() }
    }

    fn buffer(&self, member: usize, phase: u64) -> &UnsafeCell<Contents> {
        &self.buffers[2 * member + (phase % 2) as usize].0
    }

    /// Puts a value into the member's place.
    ///
    /// # Safety
    ///
    /// By the member itself, before it arrives for `phase`, of which it has crossed all before.
    pub unsafe fn write<T: Data>(&self, member: usize, phase: u64, value: T) {
        let is_small = size_of::<T>() <= INLINE && align_of::<T>() <= align_of::<InlineBytes>();
        // SAFETY: nobody else reads or writes this place now (Invariant 1).
        self.buffer(member, phase).with_mut(|buffer| {
            // SAFETY: as above.
            let buffer = unsafe { &mut *buffer };
            buffer.written = Some((phase, TypeId::of::<T>()));
            if is_small {
                let bytes = (&raw mut buffer.bytes).cast::<T>();
                // SAFETY: there is room for it, and it is aligned.
                unsafe { bytes.write(value) };
            } else {
                buffer.boxed = Some(Box::new(value));
            }
        });
    }

    /// Puts a list into the member's place.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write).
    pub unsafe fn write_list<T: Data>(&self, member: usize, phase: u64, list: Vec<T>) {
        self.buffer(member, phase).with_mut(|buffer| {
            // SAFETY: as in `write`.
            let buffer = unsafe { &mut *buffer };
            buffer.written = Some((phase, TypeId::of::<Vec<T>>()));
            buffer.boxed = Some(Box::new(list));
        });
    }

    /// What a member has put into its place.
    ///
    /// # Panics
    ///
    /// If it has put nothing there in this exchange, or something of another type: the members have not called the same things in the same order.
    ///
    /// # Safety
    ///
    /// After the crossing of `phase`, and before the caller arrives for the next.
    pub unsafe fn read<T: Data>(&self, member: usize, phase: u64) -> T {
        self.buffer(member, phase).with(|buffer| {
            // SAFETY: nobody writes this place now (Invariant 1).
            let buffer = unsafe { &*buffer };
            check::<T>(buffer, member, phase);
            let is_small = size_of::<T>() <= INLINE && align_of::<T>() <= align_of::<InlineBytes>();
            if is_small {
                let bytes = (&raw const buffer.bytes).cast::<T>();
                // SAFETY: a value of this type was written there, in this exchange.
                return unsafe { bytes.read() };
            }
            *buffer.boxed.as_ref().and_then(|boxed| boxed.downcast_ref::<T>()).expect("checked")
        })
    }

    /// Hands the list that a member has put into its place to `read`.
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
        self.buffer(member, phase).with(|buffer| {
            // SAFETY: as in `read`.
            let buffer = unsafe { &*buffer };
            check::<Vec<T>>(buffer, member, phase);
            let list = buffer.boxed.as_ref().and_then(|boxed| boxed.downcast_ref::<Vec<T>>());
            read(list.expect("checked"))
        })
    }
}

fn check<T: 'static>(buffer: &Contents, member: usize, phase: u64) {
    let gave = buffer.written.filter(|(when, _)| *when == phase).map(|(_, written)| written);
    assert!(
        gave == Some(TypeId::of::<T>()),
        "member {member} has given nothing of this type: all members of a gang must call the same operations in the same order",
    );
}
