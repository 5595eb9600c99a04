//! The policies of the competitive mutex that a program can have: one line each.

use crate::Program;
use clap::builder::PossibleValue;
use lock_api::RawMutex;
use stanchion_competitive::{RawPolicyMutex, policy};

/// A policy by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What `--policy` calls it.
    pub name: &'static str,
    /// What `--help` says of it.
    pub about: &'static str,
}

macro_rules! policies {
    ($($name:literal: $policy:ty, $about:literal;)+) => {
        /// Every policy.
        pub const POLICIES: &[Entry] = &[$(Entry { name: $name, about: $about }),+];

        /// Runs `program` with mutexes of the policy called `name`, which the parser of the arguments has let through.
        pub(crate) fn run<P: Program>(name: &str, program: P) -> P::Outcome {
            match name {
                $($name => program.run(&|_| <RawPolicyMutex<$policy> as RawMutex>::INIT),)+
                other => unreachable!("clap lets only names of the table through, not {other}"),
            }
        }
    };
}

policies! {
    "always-block": policy::AlwaysBlock, "the paper's: sleeps at once";
    "always-spin": policy::AlwaysSpin, "the paper's: never sleeps";
    "fixed-spin": policy::FixedSpin, "the paper's: spins for as long as blocking costs, then sleeps";
    "half-spin": policy::FixedSpin<50>, "the paper's: spins for half as long";
    "optimal-online-approximation": policy::OptimalOnlineApproximation, "the paper's: the best threshold for a histogram of this lock's waits";
    "last-three": policy::LastThreeSamples, "the paper's: the best threshold for this lock's last three waits";
    "random-walk": policy::RandomWalk, "the paper's: up a step after a short wait, down after a long one";
    "randomized": policy::Randomized, "a random threshold, against which no sequence of waits is bad";
    "holder-aware": policy::HolderAware, "spins while the holder is on a processor";
    "default": policy::Adaptive, "what a Mutex without a policy has";
}

/// For clap: what `--policy` may be.
pub(crate) fn values() -> Vec<PossibleValue> {
    POLICIES.iter().map(|policy| PossibleValue::new(policy.name).help(policy.about)).collect()
}
