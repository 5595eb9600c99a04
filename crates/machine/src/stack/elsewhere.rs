//! Systems with another memory protection: there are no stacks.

use core::convert::Infallible;
use core::ptr::NonNull;

use crate::stack::{Guards, Size, StackError};

/// Cannot be had.
#[derive(Debug)]
pub(crate) struct Memory(Infallible);

pub(crate) fn page() -> usize {
    4096
}

/// Nothing is known of a limit.
pub(crate) fn half_is_used() -> bool {
    false
}

pub(crate) fn guards() -> Guards {
    Guards::Protected
}

impl Memory {
    pub(crate) fn new(
        _size: Size,
        _stacks: usize,
        _best: Guards,
        _advice: &'static str,
    ) -> Result<Self, StackError> {
        Err(StackError::Unsupported { os: std::env::consts::OS })
    }

    pub(crate) fn low(&self) -> NonNull<u8> {
        match self.0 {}
    }

    pub(crate) fn guards(&self) -> Guards {
        match self.0 {}
    }

    pub(crate) fn open(&self, _number: usize) -> Result<(), StackError> {
        match self.0 {}
    }

    /// # Safety
    ///
    /// There is none.
    pub(crate) unsafe fn discard(&self, _from: usize, _bytes: usize) {
        match self.0 {}
    }
}

/// Nothing is watched, as there are no stacks.
#[derive(Debug)]
pub(crate) struct Watched;

pub(crate) fn watch() -> Result<Watched, StackError> {
    Ok(Watched)
}
