//! Affinity outside Linux, through `core_affinity`: there is no mask to read back, so leaving a
//! processor means allowing all again is left to the system.

use crate::topology::PinError;
use std::vec::Vec;

/// There is nothing to restore.
#[derive(Clone, Debug)]
pub(crate) struct Mask;

pub(crate) fn processors() -> Vec<usize> {
    match core_affinity::get_core_ids() {
        Some(cores) if !cores.is_empty() => {
            let mut processors: Vec<_> = cores.into_iter().map(|core| core.id).collect();
            processors.sort_unstable();
            processors
        }
        _ => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

pub(crate) fn pin(cpu: usize) -> Result<Mask, PinError> {
    let allowed = processors();
    if !allowed.contains(&cpu) {
        return Err(PinError::NotAllowed { cpu, allowed });
    }
    if core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
        Ok(Mask)
    } else {
        Err(PinError::Unsupported { cpu, reason: "it refused".into() })
    }
}

/// The thread stays where it is: these systems do not tell what its affinity was before.
pub(crate) fn restore(_: &Mask) {}

pub(crate) fn unpin(_: &Mask) {}

/// These systems do not tell.
pub(crate) fn affinity() -> Option<Mask> {
    None
}

pub(crate) fn processors_of(_: &Mask) -> Vec<usize> {
    processors()
}
