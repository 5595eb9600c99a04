//! As with the kernel's barrier: the side that runs often pays nothing, the other one for a fence.
//!
//! Within a run nothing is reordered; what is kept is who pays. Two runs on two threads of the
//! operating system may meet all the same, and a test may go on when its run is over: so both are
//! real fences too, which no virtual thread is charged for.

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
