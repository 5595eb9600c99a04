//! The pool from which threads take work: stars that are still to be advanced in this step, and
//! those that have been.
//!
//! A chunk is in one of the two piles or held by one thread, which advances it without a lock.

use super::stars::Chunk;
use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use lock_api::RawMutex;

/// The data under the pool's lock.
#[derive(Debug)]
struct Piles {
    /// Chunks that are still to be advanced in this step.
    due: Vec<Chunk>,
    /// Chunks that have been advanced.
    done: Vec<Chunk>,
}

/// All chunks, before one lock.
pub(super) struct Pool<L> {
    /// The two piles, under one lock. Written by every thread.
    piles: Named<L, Piles>,
    /// The pace of a simulated machine.
    pace: Pace,
}

impl<L: RawMutex> Pool<L> {
    /// All of `chunks` due.
    pub(super) fn new(chunks: Vec<Chunk>, pace: Pace, locks: &mut Locksmith<'_, L>) -> Self {
        let done = Vec::with_capacity(chunks.len());
        Self { piles: locks.lock("pool".to_owned(), Piles { due: chunks, done }), pace }
    }

    /// A chunk that is due, if there is one.
    pub(super) fn take(&self, ledger: &mut Ledger) -> Option<Chunk> {
        let mut piles = ledger.lock(&self.piles);
        stanchion_machine::write(&piles.due);
        self.pace.compute(SECTION);
        piles.due.pop()
    }

    /// Brings back one that was advanced.
    pub(super) fn bring(&self, chunk: Chunk, ledger: &mut Ledger) {
        let mut piles = ledger.lock(&self.piles);
        stanchion_machine::write(&piles.done);
        self.pace.compute(SECTION);
        piles.done.push(chunk);
    }

    /// Makes the chunks that are done due again. For the thread that has the
    /// [barrier](crate::barrier) to itself: no thread holds a chunk.
    pub(super) fn turn(&self, ledger: &mut Ledger) {
        let mut piles = ledger.lock(&self.piles);
        let Piles { due, done } = &mut *piles;
        core::mem::swap(due, done);
    }

    /// Takes everything, for when no thread works any more.
    pub(super) fn empty(&self, ledger: &mut Ledger) -> Vec<Chunk> {
        let mut piles = ledger.lock(&self.piles);
        let mut chunks = core::mem::take(&mut piles.due);
        chunks.append(&mut piles.done);
        chunks
    }
}
