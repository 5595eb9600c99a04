//! The facilities of the kernel for locks, and why one of them is missing here.

use stanchion_machine::{presence, topology};
use stanchion_study::survey::{fences, kernel};

use super::Facility;

pub(super) fn facilities() -> Vec<Facility> {
    let facility = |what, answer: Result<String, String>| Facility {
        what,
        available: answer.is_ok(),
        detail: answer.unwrap_or_else(|why| why),
    };
    let presence = presence::status()
        .map(|()| "switch records, one load to ask whether a thread is on a processor".to_owned())
        .map_err(|why| why.to_string());
    let rseq = kernel::rseq().map(|rseq| rseq.to_string()).map_err(|why| why.to_string());
    let slice = kernel::slice_extension()
        .map(|()| "a critical section may ask not to be preempted for a few µs".to_owned())
        .map_err(|why| why.to_string());
    // Half of the time of a millisecond in barriers.
    let barriers = fences::heavy(&topology::processors()).map(|nanos| {
        format!(
            "one side fences for both; above some {} heavy fences a millisecond both do",
            stanchion_study::units::significant(0.5e6 / nanos)
        )
    });
    vec![
        facility("membarrier", barriers),
        facility("presence", presence),
        facility("rseq", rseq),
        facility("time-slice extension", slice),
    ]
}
