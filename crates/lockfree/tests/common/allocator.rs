//! An allocator that ends the process when memory is given back wrongly: with another layout than
//! it was asked for with, twice, or without ever having been asked for. It fills the memory that is
//! given back, so that a thread that still reads it reads nonsense.
//!
//! Included by tests that have it as their global allocator.
#![allow(dead_code)]

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

pub(crate) struct Checked;

/// A note in front of each piece, as close as the piece's alignment lets it be.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Note {
    /// A mark that tells whether the piece is lent, or given back.
    mark: usize,
    /// The size that was asked for.
    size: usize,
    /// The alignment that was asked for.
    align: usize,
}

const GIVEN_OUT: usize = 0x5AFE_0001_5AFE_0001;
const GIVEN_BACK: usize = 0xDEAD_0002_DEAD_0002;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// Returns how many pieces the calling thread has asked for and not given back. Pieces that other
/// threads give back for it are not counted.
pub(crate) fn live() -> isize {
    LIVE.get()
}

fn count(change: isize) {
    // A thread that ends has no count any more.
    let _ = LIVE.try_with(|live| live.set(live.get() + change));
}

fn with_note(layout: Layout) -> Option<(Layout, usize)> {
    Layout::new::<Note>().extend(layout).ok().map(|(whole, offset)| (whole.pad_to_align(), offset))
}

// SAFETY: a piece lies behind its note in a piece of the system's, as large and as aligned as it
// was asked for.
unsafe impl GlobalAlloc for Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = with_note(layout) else { return core::ptr::null_mut() };
        // SAFETY: it is not empty: the note is in it.
        let base = unsafe { System.alloc(whole) };
        if base.is_null() {
            return base;
        }
        count(1);
        // SAFETY: `whole` is longer than that.
        let piece = unsafe { base.add(offset) };
        // SAFETY: `whole` begins with room for a note, and `offset` is a multiple of the note's
        // alignment or more.
        let note = unsafe { piece.sub(size_of::<Note>()).cast::<Note>() };
        let written = Note { mark: GIVEN_OUT, size: layout.size(), align: layout.align() };
        // SAFETY: as before; a small alignment of the piece may misalign its note.
        unsafe { note.write_unaligned(written) };
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: `alloc` has put a note in front of the piece.
        let note = unsafe { piece.sub(size_of::<Note>()).cast::<Note>() };
        // SAFETY: as before.
        let read = unsafe { note.read_unaligned() };
        let expected = Note { mark: GIVEN_OUT, size: layout.size(), align: layout.align() };
        if read != expected {
            wrong(read.mark);
        }
        count(-1);
        // SAFETY: as before, and no thread uses the piece any more.
        unsafe { note.write_unaligned(Note { mark: GIVEN_BACK, ..read }) };
        // SAFETY: as before.
        unsafe { piece.write_bytes(0xDB, layout.size()) };
        let Some((whole, offset)) = with_note(layout) else { wrong(0) };
        // SAFETY: where the system's piece began.
        let base = unsafe { piece.sub(offset) };
        // SAFETY: it is the system's, of this layout.
        unsafe { System.dealloc(base, whole) };
    }
}

/// Nothing may be allocated here, and nothing unwinds out of an allocator.
#[cold]
fn wrong(mark: usize) -> ! {
    let why: &[u8] = match mark {
        GIVEN_OUT => b"memory was given back with another layout than it was asked for with\n",
        GIVEN_BACK => b"memory was given back twice\n",
        _ => b"memory was given back that had not been asked for\n",
    };
    use std::io::Write;
    let _ = std::io::stderr().write_all(why);
    std::process::abort()
}
