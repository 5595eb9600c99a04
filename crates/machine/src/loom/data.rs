//! Declarations of computation and data, which do nothing here. No time passes in a model, and data
//! that must be checked is in a [`cell`](super::cell).

pub(crate) fn work(_nanos: u64) {}

pub(crate) fn burn(_nanos: u64) {}

pub(crate) fn read(_start: *const (), _bytes: usize) {}

pub(crate) fn write(_start: *const (), _bytes: usize) {}

pub(crate) fn label(_start: *const (), _bytes: usize, _name: &str) {}
