//! Requests not to be preempted. The simulated scheduler honours them for the machine's grace.
//! Outside a run there is no scheduler, and requests are not counted.

use crate::preemption::Means;
use stanchion_simulator::inside;
use stanchion_simulator::os::keep;

pub(crate) fn keep() {
    if inside::is_running() {
        keep::begin();
    }
}

pub(crate) fn thank() -> bool {
    inside::is_running() && keep::end()
}

pub(crate) fn requests() -> u32 {
    if inside::is_running() { keep::requests() } else { 0 }
}

pub(crate) fn means() -> Means {
    Means::Scheduler
}
