//! Ordinary data and computation, as far as the program declares them.

use stanchion_simulator::inside::{self, Kind};

/// A load or store of today moves so many bytes.
const WORD: usize = 8;

pub(crate) fn work(nanos: u64) {
    inside::work(nanos);
}

pub(crate) fn burn(nanos: u64) {
    inside::work(nanos);
}

pub(crate) fn read(start: *const (), bytes: usize) {
    words(start, bytes, Kind::Read);
}

pub(crate) fn write(start: *const (), bytes: usize) {
    words(start, bytes, Kind::Write);
}

pub(crate) fn label(start: *const (), bytes: usize, name: &str) {
    inside::label(start, bytes, name);
}

/// One access to each word that the value lies in.
fn words(start: *const (), bytes: usize, kind: Kind) {
    if bytes == 0 {
        return;
    }
    let first = start.addr() / WORD;
    let last = (start.addr() + bytes - 1) / WORD;
    for word in first..=last {
        // Of the first word only a part may belong to the value: its own address then.
        let address = (word * WORD).max(start.addr());
        inside::access(start.with_addr(address), kind);
    }
}
