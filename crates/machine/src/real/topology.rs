//! Affinity masks and control groups.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod affinity;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "topology/affinity_elsewhere.rs"]
mod affinity;
#[cfg(any(target_os = "linux", target_os = "android", test))]
mod control_group;

pub(crate) use affinity::{Mask, pin, processors, restore};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use control_group::quota;

/// Only Linux has control groups.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn quota() -> Option<crate::topology::Quota> {
    None
}
