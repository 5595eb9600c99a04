//! The addresses that are slabs, for a handler that may look at any moment and may not wait.
//!
//! Chunks of entries, the first a static, the others made when needed and never freed: so a reader
//! may walk over them at its leisure.
//!
//! | `state` | `low` … `advice` | writer of the entry |
//! | --- | --- | --- |
//! | `FREE` | as they were | none; the thread that exchanges it to `TAKEN` owns it |
//! | `TAKEN` | are being written, or are not shown any more | its owner |
//! | `SHOWN` | a slab that is mapped | none |
//!
//! # Invariants
//!
//! 1. A slab is mapped while its entry is shown, and after that until `readers` was 0.
//! 2. A reader that has counted itself and then sees `SHOWN` reads what belongs to a mapped slab,
//!    until it takes itself out of the count.
//!
//! # Orderings
//!
//! Invariant 2 is a [`handshake`](crate::handshake): the reader adds to `readers`, then loads
//! `state`. The thread that leaves stores `state`, then loads `readers`. One of them sees the
//! other's write. Why these two sides have no `Handshake`: no model reaches this backend, so none
//! could miss a fence. The four accesses are sequentially consistent instead. A reader looks at the
//! range before it counts itself, so that the thread that leaves does not wait for readers of
//! another slab. What the reader sees then may be of two slabs, so it looks again afterwards.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::boxed::Box;

use crate::stack::{Head, Size};
use crate::wait::{Patient, WaitPolicy, wait_until};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
const SHOWN: u8 = 2;

/// Entries of a chunk. Slabs grow with their number, so that few programs have more.
const ENTRIES: usize = 64;

struct Chunk {
    /// Its entries.
    entries: [Entry; ENTRIES],
    /// The next chunk; null until one is needed.
    next: AtomicPtr<Chunk>,
}

#[derive(Debug)]
struct Entry {
    /// `FREE`, `TAKEN` or `SHOWN`.
    state: AtomicU8,
    /// The number of handlers that read the entry.
    readers: AtomicU32,
    /// The lowest address of the slab.
    low: AtomicPtr<u8>,
    /// The length of the slab.
    bytes: AtomicUsize,
    /// The bytes of a stack.
    stack: AtomicUsize,
    /// The bytes of a guard.
    guard: AtomicUsize,
    /// The text that a report of an overflow ends with.
    advice: AtomicPtr<u8>,
    /// The length of that text.
    advice_length: AtomicUsize,
}

static FIRST: Chunk = Chunk::new();

impl Chunk {
    const fn new() -> Self {
        Self { entries: [const { Entry::new() }; ENTRIES], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Self> {
        // Acquire pairs with the Release in `grow`. SAFETY: chunks are never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The chunk behind the last one, which another may have made meanwhile.
    fn grow(&self) -> &'static Self {
        let fresh = Box::into_raw(Box::new(Self::new()));
        // Release: a thread that sees the chunk sees it made. Acquire: so do we, if another thread
        // has put one.
        let put = self.next.compare_exchange(
            ptr::null_mut(),
            fresh,
            Ordering::Release,
            Ordering::Acquire,
        );
        let chunk = match put {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: it came from a box, and no other thread has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                other
            }
        };
        // SAFETY: not null, and never freed.
        unsafe { &*chunk }
    }
}

impl Entry {
    const fn new() -> Self {
        Self {
            state: AtomicU8::new(FREE),
            readers: AtomicU32::new(0),
            low: AtomicPtr::new(ptr::null_mut()),
            bytes: AtomicUsize::new(0),
            stack: AtomicUsize::new(0),
            guard: AtomicUsize::new(0),
            advice: AtomicPtr::new(ptr::null_mut()),
            advice_length: AtomicUsize::new(0),
        }
    }

    /// Where `address` is in the slab, if it is.
    fn offset(&self, address: usize) -> Option<usize> {
        // Relaxed: what it is worth, the state says.
        let low = self.low.load(Ordering::Relaxed).addr();
        let offset = address.checked_sub(low)?;
        (offset < self.bytes.load(Ordering::Relaxed)).then_some(offset)
    }
}

/// A slab is in the table until this is dropped.
#[derive(Debug)]
pub(super) struct Ticket(&'static Entry);

/// Shows a slab, which is mapped until the ticket has been dropped.
pub(super) fn enter(low: NonNull<u8>, bytes: usize, size: Size, advice: &'static str) -> Ticket {
    let entry = take();
    // Relaxed: shown by the Release below.
    entry.low.store(low.as_ptr(), Ordering::Relaxed);
    entry.bytes.store(bytes, Ordering::Relaxed);
    entry.stack.store(size.bytes(), Ordering::Relaxed);
    entry.guard.store(size.guard(), Ordering::Relaxed);
    entry.advice.store(advice.as_ptr().cast_mut(), Ordering::Relaxed);
    entry.advice_length.store(advice.len(), Ordering::Relaxed);
    // Release, at least: pairs with the loads in `find`.
    entry.state.store(SHOWN, Ordering::SeqCst);
    Ticket(entry)
}

fn take() -> &'static Entry {
    let mut chunk = &FIRST;
    loop {
        for entry in &chunk.entries {
            // Acquire pairs with the Release of the thread that left it: its fields are written
            // after the old ones were read.
            let taken =
                entry.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return entry;
            }
        }
        chunk = chunk.next().unwrap_or_else(|| chunk.grow());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // SeqCst: the header has why.
        self.0.state.store(TAKEN, Ordering::SeqCst);
        wait_until(
            &self.0.readers,
            Ordering::SeqCst,
            |readers| readers == 0,
            &mut <Patient>::start(),
        );
        self.0.state.store(FREE, Ordering::Release);
    }
}

/// A place in a slab, which stays mapped meanwhile.
pub(super) struct Place {
    /// The lowest address of the slab.
    low: *const u8,
    /// The distance of the address from `low`.
    offset: usize,
    /// The sizes of a stack and of its guard.
    pub(super) size: Size,
    /// The text that a report of an overflow ends with.
    pub(super) advice: &'static str,
}

impl Place {
    fn number(&self) -> usize {
        self.offset / self.size.stride()
    }

    /// Returns whether it is in the guard of its stack.
    pub(super) fn is_guard(&self) -> bool {
        self.offset % self.size.stride() < self.size.guard()
    }

    /// Returns whether `address` is in the same stack, or in its guard.
    pub(super) fn is_beside(&self, address: usize) -> bool {
        let first = self.low.addr() + self.number() * self.size.stride();
        // A stack pointer may stand at the very end.
        (first..=first + self.size.stride()).contains(&address)
    }

    /// The head of the stack.
    pub(super) fn head(&self) -> &Head {
        // SAFETY: it lies in the slab, which is mapped (Invariant 2).
        let head = unsafe { self.low.add(self.size.head_of(self.number())) };
        // SAFETY: as above; the head of a stack is readable, aligned, and zeros are one.
        unsafe { &*head.cast::<Head>() }
    }
}

/// Calls `body` if `address` is in a slab. Async-signal-safe if `body` is.
pub(super) fn find<R>(address: usize, mut body: impl FnMut(&Place) -> R) -> Option<R> {
    let mut chunk = Some(&FIRST);
    while let Some(here) = chunk {
        for entry in &here.entries {
            // Acquire: the range is as new as the state.
            let shown = entry.state.load(Ordering::Acquire) == SHOWN;
            if !shown || entry.offset(address).is_none() {
                continue;
            }
            // SeqCst, twice: the header has why.
            entry.readers.fetch_add(1, Ordering::SeqCst);
            let shown = entry.state.load(Ordering::SeqCst) == SHOWN;
            let found = shown.then(|| place(entry, address)).flatten();
            let result = found.map(|place| body(&place));
            // Release: what was read is read before the slab goes; pairs with the load in
            // `Ticket::drop`.
            entry.readers.fetch_sub(1, Ordering::Release);
            if result.is_some() {
                return result;
            }
        }
        chunk = here.next();
    }
    None
}

/// Returns the place of an address by a shown entry; Invariant 2 holds.
fn place(entry: &Entry, address: usize) -> Option<Place> {
    let offset = entry.offset(address)?;
    // Relaxed, here and below: the state was loaded before.
    let advice = entry.advice.load(Ordering::Relaxed);
    let length = entry.advice_length.load(Ordering::Relaxed);
    // SAFETY: the two are of one string, which is static.
    let bytes = unsafe { core::slice::from_raw_parts(advice, length) };
    Some(Place {
        low: entry.low.load(Ordering::Relaxed),
        offset,
        size: Size::recorded(
            entry.stack.load(Ordering::Relaxed),
            entry.guard.load(Ordering::Relaxed),
        ),
        // SAFETY: as above.
        advice: unsafe { core::str::from_utf8_unchecked(bytes) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;
    use std::thread;
    use std::vec::Vec;

    fn slab(stacks: usize) -> (Size, Vec<u8>) {
        let size = Size::of(1).unwrap();
        (size, std::vec![0; stacks * size.stride()])
    }

    fn low(memory: &mut [u8]) -> NonNull<u8> {
        NonNull::new(memory.as_mut_ptr()).unwrap()
    }

    #[test]
    fn an_address_is_found_while_its_slab_is_shown_and_its_guards_are_told() {
        let (size, mut memory) = slab(3);
        let low = low(&mut memory);
        let ticket = enter(low, memory.len(), size, "advice");
        let second = low.addr().get() + size.stride();
        let guard = |offset| {
            find(second + offset, |place| {
                assert_eq!((place.number(), place.size, place.advice), (1, size, "advice"));
                assert!(place.is_beside(second) && place.is_beside(second + size.stride()));
                assert!(
                    !place.is_beside(second - 1) && !place.is_beside(second + size.stride() + 1)
                );
                place.is_guard()
            })
        };
        assert_eq!(guard(0), Some(true));
        assert_eq!(guard(size.guard() - 1), Some(true));
        assert_eq!(guard(size.guard()), Some(false));
        assert_eq!(guard(size.stride() - 1), Some(false));
        assert!(find(low.addr().get() - 1, |_| ()).is_none());
        assert!(find(low.addr().get() + memory.len(), |_| ()).is_none());
        drop(ticket);
        assert_eq!(guard(0), None);
    }

    #[test]
    fn there_is_room_for_more_than_a_chunk() {
        let mut slabs: Vec<_> = (0..2 * ENTRIES + 1).map(|_| slab(1)).collect();
        let shown =
            |(size, memory): &mut (Size, Vec<u8>)| enter(low(memory), memory.len(), *size, "");
        let tickets: Vec<_> = slabs.iter_mut().map(shown).collect();
        for (_, memory) in &mut slabs {
            assert_eq!(find(low(memory).addr().get(), |place| place.number()), Some(0));
        }
        drop(tickets);
    }

    #[test]
    fn a_slab_stays_until_who_looks_at_it_has_done() {
        for _ in 0..5 {
            let (size, mut memory) = slab(1);
            let low = low(&mut memory);
            let ticket = enter(low, memory.len(), size, "");
            let entry = ticket.0;
            let (looking, gone) = (AtomicBool::new(false), AtomicBool::new(false));
            let address = low.addr().get();
            thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    find(address, |_| {
                        looking.store(true, Ordering::Relaxed);
                        let leaves = |state| state != SHOWN;
                        wait_until(
                            &entry.state,
                            Ordering::Relaxed,
                            leaves,
                            &mut <Patient>::start(),
                        );
                        // Time enough for a thread that would not wait.
                        (0..20).for_each(|_| thread::yield_now());
                        gone.load(Ordering::Relaxed)
                    })
                });
                wait_until(&looking, Ordering::Relaxed, |looking| looking, &mut <Patient>::start());
                drop(ticket);
                gone.store(true, Ordering::Relaxed);
                assert!(find(address, |_| ()).is_none());
                assert_eq!(reader.join().unwrap(), Some(false));
            });
        }
    }
}
