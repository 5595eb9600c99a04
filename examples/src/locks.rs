//! The locks a program can have: one line each.

use crate::Program;
use crate::std_lock::Std;
use clap::builder::PossibleValue;
use lock_api::RawMutex;

/// A lock by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in `--lock`.
    pub name: &'static str,
    /// The line in `--help`.
    pub about: &'static str,
}

macro_rules! locks {
    ($($name:literal: $lock:ty, $about:literal;)+) => {
        /// Every lock.
        pub const LOCKS: &[Entry] = &[$(Entry { name: $name, about: $about }),+];

        /// Runs `program` with the lock called `name`, which the parser of the arguments has let
        /// through.
        ///
        /// # Panics
        ///
        /// If there is no such lock.
        pub fn run<P: Program>(name: &str, program: P) -> P::Outcome {
            match name {
                $($name => program.run(&|_| <$lock as RawMutex>::INIT),)+
                other => unreachable!("clap lets only names of the table through, not {other}"),
            }
        }
    };
}

locks! {
    "test-and-set": stanchion_spin::TestAndSet, "ours: a bit, Ethernet-style backoff; unfair, 1 byte";
    "preemption-safe": stanchion_spin::PreemptionSafe, "ours: a bit, polled with backoff; its holder asks not to be preempted";
    "recovering": stanchion_spin::Recovering, "ours: a bit; waiters bring a preempted holder to their own processor";
    "ticket": stanchion_spin::Ticket, "ours: first come, first served, proportional backoff";
    "anderson": stanchion_spin::Anderson<16>, "ours: array lock, a slot per waiter";
    "clh": stanchion_spin::Clh, "ours: queue lock, waits on its predecessor's node";
    "mcs": stanchion_spin::Mcs, "ours: queue lock, waits on its own node";
    "time-published-mcs": stanchion_spin::TimePublishedMcs, "ours: queue lock that passes over preempted waiters";
    "parking_lot": parking_lot::RawMutex, "peer: a byte, spins a little, then parks";
    "std": Std, "peer: std::sync::Mutex, spins a little, then parks";
}

/// The lock of a run that names none.
pub const DEFAULT: &str = "mcs";

/// For clap: what `--lock` may be.
#[must_use]
pub fn values() -> Vec<PossibleValue> {
    LOCKS.iter().map(|lock| PossibleValue::new(lock.name).help(lock.about)).collect()
}
