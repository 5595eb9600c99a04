//! The table of the policies: a policy is registered here, and nowhere else.
//!
//! Tests, benchmarks, races, costs, the calibration and the examples expand the table with
//! [`__policies!`](crate::__policies). Each of them takes the fields that it needs.
//! `tests/together/policies.rs` fails if a policy of the crate has no row.
//!
//! # The fields of a row
//!
//! - `TEST: TYPE`: the name of the policy's tests, and its type.
//! - `name`: the type as one writes it, for benchmarks and costs.
//! - `public`: the type without parameters, and its constructor if it is no unit. It is empty in a
//!   row that is another row's policy with another parameter.
//! - `bytes`: the size of a raw mutex with the policy.
//! - `race`: the name in `cargo study regret`, and what is special of the policy there: `ours` for
//!   nothing, `seeing` if it asks whether the holder is on a processor, `spinning` if no waiter
//!   ever sleeps. It is empty for the default, which is judged, and for a policy that takes no
//!   part.
//! - `command`: the name in `--policy` of the examples, and the line in `--help`. It is empty for a
//!   policy that needs more than a name.

/// Expands to `callback! { [context] {row} {row} … }`, with a row for each policy of this crate.
/// `[context]` may be left out of the call.
///
/// A callback matches a row from its first field to the last one that it needs, and the rest by
/// `$($rest:tt)*`. The types are those of the package that the call names: this crate or one of its
/// twins.
#[doc(hidden)]
#[macro_export]
macro_rules! __policies {
    ($($callback:tt)::+ $([$($context:tt)*])?) => {
        $($callback)::+! {
            [$($($context)*)?]
            {
                always_block: $crate::policy::AlwaysBlock,
                name: "AlwaysBlock",
                public: [AlwaysBlock],
                bytes: 12,
                race: [ours, "AlwaysBlock"],
                command: ["always-block", "the paper's: sleeps at once"],
            }
            {
                always_spin: $crate::policy::AlwaysSpin,
                name: "AlwaysSpin",
                public: [AlwaysSpin],
                bytes: 12,
                race: [spinning, "AlwaysSpin"],
                command: ["always-spin", "the paper's: never sleeps"],
            }
            {
                fixed_spin: $crate::policy::FixedSpin,
                name: "FixedSpin",
                public: [FixedSpin::new],
                bytes: 12,
                race: [ours, "FixedSpin C"],
                command: [
                    "fixed-spin", "the paper's: spins for as long as blocking costs, then sleeps"
                ],
            }
            {
                fixed_spin_of_half: $crate::policy::FixedSpin<50>,
                name: "FixedSpin<50>",
                public: [],
                bytes: 12,
                race: [ours, "FixedSpin C/2"],
                command: ["half-spin", "the paper's: spins for half as long"],
            }
            {
                optimal_online: $crate::policy::OptimalOnline,
                name: "OptimalOnline",
                public: [OptimalOnline::new],
                bytes: 16,
                race: [],
                command: [],
            }
            {
                optimal_online_approximation: $crate::policy::OptimalOnlineApproximation,
                name: "OptimalOnlineApproximation",
                public: [OptimalOnlineApproximation::new],
                bytes: 16,
                race: [ours, "OptimalOnlineApproximation"],
                command: [
                    "optimal-online-approximation",
                    "the paper's: the best threshold for a histogram of this lock's waits"
                ],
            }
            {
                last_three_samples: $crate::policy::LastThreeSamples,
                name: "LastThreeSamples",
                public: [LastThreeSamples::new],
                bytes: 16,
                race: [ours, "LastThreeSamples"],
                command: [
                    "last-three", "the paper's: the best threshold for this lock's last three waits"
                ],
            }
            {
                random_walk: $crate::policy::RandomWalk,
                name: "RandomWalk",
                public: [RandomWalk::new],
                bytes: 16,
                race: [ours, "RandomWalk"],
                command: [
                    "random-walk", "the paper's: up a step after a short wait, down after a long one"
                ],
            }
            {
                randomized: $crate::policy::Randomized,
                name: "Randomized",
                public: [Randomized],
                bytes: 12,
                race: [ours, "Randomized"],
                command: [
                    "randomized", "a random threshold, against which no sequence of waits is bad"
                ],
            }
            {
                holder_aware: $crate::policy::HolderAware,
                name: "HolderAware",
                public: [HolderAware::new],
                bytes: 16,
                race: [seeing, "HolderAware"],
                command: ["holder-aware", "spins while the holder is on a processor"],
            }
            {
                adaptive: $crate::policy::Adaptive,
                name: "Adaptive",
                public: [Adaptive::new],
                bytes: 16,
                race: [],
                command: ["default", "what a Mutex without a policy has"],
            }
        }
    };
}
