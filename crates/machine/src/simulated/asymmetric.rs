//! The asymmetric barrier, charged as on the simulated machine. If the machine has the kernel's
//! barrier, the side that runs often pays nothing, and the other side interrupts the processors of
//! all running threads. If it has none, both sides pay for a fence.
//!
//! Within a run nothing is reordered, so only the charge matters. But two runs on two threads of
//! the operating system may share memory, and a test may continue when its run is over. So both are
//! real fences too, for which no virtual thread is charged.

use core::sync::atomic as core_atomic;

use crate::atomic::Ordering;
use stanchion_simulator::inside;

pub(crate) fn light() {
    light_while_free();
    if !is_free() {
        inside::fence();
    }
}

pub(crate) fn heavy() {
    core_atomic::fence(Ordering::SeqCst);
    inside::membarrier();
}

pub(crate) fn light_while_free() {
    core_atomic::fence(Ordering::SeqCst);
}

pub(crate) fn is_free() -> bool {
    inside::has_membarrier()
}

pub(crate) fn never_use_membarrier() {}
