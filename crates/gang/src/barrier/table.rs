//! The table of the barriers: a barrier is registered here, and nowhere else.
//!
//! Tests, models, torture, contests and costs expand the table with
//! [`__barriers!`](crate::__barriers). Each of them takes the fields that it needs.
//! `tests/table.rs` fails if a barrier of the crate has no row.
//!
//! # The fields of a row
//!
//! - `TEST: TYPE`: the name of the barrier's tests, and its type.
//! - `name`: the type as one writes it, for costs.
//! - `sleeps`: the type, and the name of the test that members which wait for long sleep. It is
//!   empty if members never sleep; such a barrier takes no part in torture and contests.
//! - `models`: `spins` if members spin before they sleep, or `sleeps` if they sleep at once. The
//!   second word is the name of the models. It is empty for a barrier with models of its own.

/// Expands to `callback! { [context] {row} {row} … }`, with a row for each barrier of this crate.
/// `[context]` may be left out of the call.
///
/// A callback matches a row from its first field to the last one that it needs, and the rest by
/// `$($rest:tt)*`. The types are those of the package that the call names: this crate or one of its
/// twins.
#[doc(hidden)]
#[macro_export]
macro_rules! __barriers {
    ($($callback:tt)::+ $([$($context:tt)*])?) => {
        $($callback)::+! {
            [$($($context)*)?]
            {
                central: $crate::barrier::Central,
                name: "Central",
                sleeps: [Central, central_sleeps_through_a_long_wait],
                models: [spins central],
            }
            {
                bit_mask: $crate::barrier::BitMask,
                name: "BitMask",
                sleeps: [BitMask, bit_mask_sleeps_through_a_long_wait],
                models: [spins bit_mask],
            }
            {
                tree: $crate::barrier::Tree,
                name: "Tree",
                sleeps: [Tree, tree_sleeps_through_a_long_wait],
                models: [spins tree],
            }
            {
                dissemination: $crate::barrier::Dissemination,
                name: "Dissemination",
                sleeps: [Dissemination, dissemination_sleeps_through_a_long_wait],
                models: [spins dissemination],
            }
            {
                blocking: $crate::barrier::Blocking,
                name: "Blocking",
                sleeps: [Blocking, blocking_sleeps_through_a_long_wait],
                models: [sleeps blocking_barrier],
            }
            {
                two_phase: $crate::barrier::TwoPhase,
                name: "TwoPhase",
                sleeps: [TwoPhase, two_phase_sleeps_through_a_long_wait],
                models: [],
            }
            {
                yielding: $crate::barrier::Yielding,
                name: "Yielding",
                sleeps: [],
                models: [],
            }
            {
                co_resident: $crate::barrier::CoResident,
                name: "CoResident",
                sleeps: [CoResident, co_resident_sleeps_through_a_long_wait],
                models: [],
            }
        }
    };
}
