//! The locks a program can have: those of the table of `stanchion-spin`, then their peers.

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

/// Puts the locks of the table before their peers.
macro_rules! ours_first {
    ([$($peers:tt)*] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: [$($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?],
        $($rest:tt)*
    })+) => {
        locks! { $($($command: $lock, $about;)?)+ $($peers)* }
    };
}

stanchion_spin::__locks! {
    ours_first [
        "parking_lot": parking_lot::RawMutex, "peer: a byte, spins a little, then parks";
        "std": Std, "peer: std::sync::Mutex, spins a little, then parks";
    ]
}

/// The lock of a run that names none.
pub const DEFAULT: &str = "mcs";

/// For clap: what `--lock` may be.
#[must_use]
pub fn values() -> Vec<PossibleValue> {
    LOCKS.iter().map(|lock| PossibleValue::new(lock.name).help(lock.about)).collect()
}
