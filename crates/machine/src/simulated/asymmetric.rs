//! The asymmetric barrier, charged as on the simulated machine. If the machine has the kernel's
//! barrier, the side that runs often pays nothing, and the other side interrupts the processors of
//! all running threads. If it has none, or as long as barriers are too many, both sides pay for a
//! fence.
//!
//! Within a run nothing is reordered, so only the charge matters: the [modes](crate::modes) of the
//! real machine are two here, and change at once. But two runs on two threads of the operating
//! system may share memory, and a test may continue when its run is over. So both are real fences
//! too, for which no virtual thread is charged.

use core::sync::atomic as core_atomic;

use crate::atomic::Ordering;
use crate::saturation::Saturation;
use crate::sharing::{Answer, Kernel, Sharing};
use stanchion_simulator::inside;

crate::global! {
    /// The saturation of the run, for machines with the kernel's barrier.
    static SATURATION: Saturation = Saturation::new();
    /// The barriers of the run.
    static BARRIERS: Sharing = Sharing::new();
}

/// The kernel of a run.
struct Simulated;

impl Kernel for Simulated {
    fn register(&self) -> bool {
        true
    }

    fn barrier(&self) -> Answer {
        let began = inside::now();
        inside::membarrier();
        let too_many = SATURATION.counts(began, inside::now());
        if too_many { Answer::TooMany } else { Answer::Made }
    }

    fn leaves(&self) {
        SATURATION.leaves(inside::now());
        inside::leave_membarrier(true);
    }

    fn is_worth_a_try(&self) -> bool {
        SATURATION.is_over(inside::now())
    }

    fn sleep(&self) {}
}

pub(crate) fn light() {
    light_while_free();
    if !inside::has_membarrier() {
        inside::fence();
    }
}

pub(crate) fn heavy() {
    core_atomic::fence(Ordering::SeqCst);
    if !inside::is_running() {
        return;
    }
    if inside::has_membarrier() {
        // If they are too many, one more makes fences suffice.
        if BARRIERS.barrier(&Simulated) == Answer::TooMany && inside::has_membarrier() {
            Simulated.leaves();
            inside::membarrier();
        }
    } else {
        inside::fence();
        reconsider();
    }
}

pub(crate) fn reconsider() {
    if inside::leaves_membarrier() && Simulated.is_worth_a_try() {
        inside::leave_membarrier(false);
    }
}

pub(crate) fn light_while_free() {
    core_atomic::fence(Ordering::SeqCst);
}

pub(crate) fn wait_until_visible() {
    if inside::is_running() {
        BARRIERS.barrier(&Simulated);
    }
}

/// One number suffices: nothing is reordered.
pub(crate) fn period() -> Option<u32> {
    inside::has_membarrier().then_some(1)
}

pub(crate) fn never_use_membarrier() {}
