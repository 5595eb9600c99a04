//! The arguments that choose a lock.

use crate::{Program, locks, policies};
use clap::Args;
use std::fmt;

/// `--lock NAME` or `--policy NAME`, not both; to be flattened into an example's arguments.
#[derive(Args, Clone, Debug)]
pub struct Choice {
    /// The lock.
    #[arg(long, value_name = "NAME", default_value = locks::DEFAULT, value_parser = locks::values(), conflicts_with = "policy")]
    lock: String,

    /// Instead of a lock, a policy of the mutex that spins and then blocks.
    #[arg(long, value_name = "NAME", value_parser = policies::values())]
    policy: Option<String>,
}

impl Choice {
    /// Runs `program` with the locks chosen.
    pub fn run<P: Program>(&self, program: P) -> P::Outcome {
        match &self.policy {
            Some(policy) => policies::run(policy, program),
            None => locks::run(&self.lock, program),
        }
    }
}

/// As in `lock mcs` or `policy last-three`.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.policy {
            Some(policy) => write!(f, "policy {policy}"),
            None => write!(f, "lock {}", self.lock),
        }
    }
}
