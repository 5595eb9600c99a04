//! The asymmetric barrier in a model: both sides are the fences that the kernel's barrier stands
//! for.

use crate::atomic::{Ordering, fence};

pub(crate) fn light() {
    fence(Ordering::SeqCst);
}

pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
}

pub(crate) fn light_while_free() {
    light();
}

pub(crate) fn wait_until_visible() {
    heavy();
}

pub(crate) fn reconsider() {}

pub(crate) fn period() -> Option<u32> {
    None
}

pub(crate) fn never_use_membarrier() {}
