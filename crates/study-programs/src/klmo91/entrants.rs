//! The strategies, each with a program compiled for it.

use std::time::Duration;

use super::programs::Program;
use stanchion_competitive::policy::{
    Adaptive, AlwaysBlock, AlwaysSpin, FixedSpin, HolderAware, LastThreeSamples, OptimalOnline,
    OptimalOnlineApproximation, RandomWalk,
};
use stanchion_competitive::{Policy, RawPolicyMutex};
use stanchion_study::context::Stop;
use stanchion_study::settings::spinning::{ENTRANTS, Thresholds};

/// A strategy, and the program compiled for it.
pub struct Entrant<A> {
    /// The paper's name of the strategy.
    pub name: &'static str,
    /// The name of its policy here.
    pub policy: &'static str,
    /// Runs the program once with the strategy.
    pub run: fn(&A, &Thresholds) -> Result<Duration, Stop>,
}

fn plain<A: Program, P: Policy + 'static>(program: &A, _: &Thresholds) -> Result<Duration, Stop> {
    program.run(&|_| RawPolicyMutex::with_policy(P::INIT))
}

fn known<A: Program>(program: &A, thresholds: &Thresholds) -> Result<Duration, Stop> {
    program.run(&|name| {
        // A lock for which no thread waited when the waits were recorded spins for C.
        let given = thresholds.get(name).copied();
        let policy = given.map_or(OptimalOnline::INIT, OptimalOnline::with_threshold);
        RawPolicyMutex::with_policy(policy)
    })
}

/// Returns the paper's strategies in its order, the baseline again, and ours.
pub const fn entrants<A: Program>() -> [Entrant<A>; ENTRANTS] {
    const fn entrant<A: Program, P: Policy + 'static>(
        name: &'static str,
        policy: &'static str,
    ) -> Entrant<A> {
        Entrant { name, policy, run: plain::<A, P> }
    }
    [
        entrant::<A, AlwaysBlock>("Always-block", "AlwaysBlock"),
        entrant::<A, AlwaysSpin>("Always-spin", "AlwaysSpin"),
        entrant::<A, FixedSpin<50>>("Fixed-spin C/2", "FixedSpin<50>"),
        entrant::<A, FixedSpin>("Fixed-spin C", "FixedSpin"),
        Entrant { name: "Opt-known", policy: "OptimalOnline", run: known::<A> },
        entrant::<A, OptimalOnlineApproximation>("Opt-approx", "OptimalOnlineApproximation"),
        entrant::<A, LastThreeSamples>("3-samples", "LastThreeSamples"),
        entrant::<A, RandomWalk>("Random-walk", "RandomWalk"),
        entrant::<A, AlwaysBlock>("Always-block again", "AlwaysBlock"),
        entrant::<A, Adaptive>("Default", "Adaptive"),
        entrant::<A, HolderAware>("Holder-aware", "HolderAware"),
    ]
}
