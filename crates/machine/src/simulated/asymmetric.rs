//! The asymmetric barrier, charged as with the kernel's: the side that runs often pays nothing, the
//! other side pays for a fence.
//!
//! Within a run nothing is reordered, so only the charge matters. But two runs on two threads of
//! the operating system may share memory, and a test may continue when its run is over. So both are
//! real fences too, for which no virtual thread is charged.

use core::sync::atomic as core_atomic;

use crate::atomic::{Ordering, fence};

pub(crate) fn light() {
    core_atomic::fence(Ordering::SeqCst);
}

pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
}

pub(crate) fn light_while_free() {
    light();
}

pub(crate) fn is_free() -> bool {
    true
}

pub(crate) fn never_use_membarrier() {}
