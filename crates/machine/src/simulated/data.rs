//! Declarations of ordinary data and computation.

use super::instructions::before;
use core::panic::Location;
use stanchion_simulator::inside::{self, Kind};

/// The number of bytes that a load or store of a present processor moves.
const WORD: usize = 8;

pub(crate) fn work(nanos: u64) {
    inside::work(nanos);
}

pub(crate) fn burn(nanos: u64) {
    inside::work(nanos);
}

#[track_caller]
pub(crate) fn read(start: *const (), bytes: usize) {
    words(start, bytes, Kind::Read);
}

#[track_caller]
pub(crate) fn write(start: *const (), bytes: usize) {
    words(start, bytes, Kind::Write);
}

pub(crate) fn label(start: *const (), bytes: usize, name: &str) {
    inside::label(start, bytes, name);
}

/// Charges one access to each word that the value lies in.
#[track_caller]
fn words(start: *const (), bytes: usize, kind: Kind) {
    if bytes == 0 {
        return;
    }
    let first = start.addr() / WORD;
    let last = (start.addr() + bytes - 1) / WORD;
    let mut instructions = before(Location::caller());
    for word in first..=last {
        // Only a part of the first word may belong to the value: use the value's own address then.
        let address = (word * WORD).max(start.addr());
        inside::access_after(instructions, start.with_addr(address), kind);
        // The next ones are the rest of one statement.
        instructions = 0;
    }
}
