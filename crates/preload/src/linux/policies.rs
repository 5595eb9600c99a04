//! The policies by which replaced mutexes wait, by name.

use stanchion_competitive::policy::{
    Adaptive, AlwaysBlock, AlwaysSpin, FixedSpin, LastThreeSamples, OptimalOnlineApproximation,
    RandomWalk, Randomized,
};

use super::layout::layout_is_known;
use super::mutex::Operations;

/// Returns the operations of the policy with this name. Fails if there is no such policy, or if the
/// C library lays out its structures in an unknown way.
pub(super) fn operations(policy: &[u8]) -> Result<&'static Operations, &'static [u8]> {
    let operations = match policy {
        b"adaptive" => const { &Operations::of::<Adaptive>() },
        b"always-block" => const { &Operations::of::<AlwaysBlock>() },
        b"always-spin" => const { &Operations::of::<AlwaysSpin>() },
        b"fixed-spin" => const { &Operations::of::<FixedSpin>() },
        b"fixed-spin-half" => const { &Operations::of::<FixedSpin<50>>() },
        b"last-three-samples" => const { &Operations::of::<LastThreeSamples>() },
        b"optimal-online-approximation" => {
            const { &Operations::of::<OptimalOnlineApproximation>() }
        }
        b"random-walk" => const { &Operations::of::<RandomWalk>() },
        b"randomized" => const { &Operations::of::<Randomized>() },
        _ => return Err(b"there is no policy of that name"),
    };
    if layout_is_known() {
        Ok(operations)
    } else {
        Err(b"this C library lays out its mutexes in a way that is not known here")
    }
}
