//! The mutexes that waits were recorded with: what a program keeps if no change is advised.

use stanchion_competitive::waits::Recording;
use stanchion_paper_klmo91::waits::judge::{BLOCK, COLUMNS, DEFAULT, POLICIES};

use crate::args::LockPolicy;
use crate::record::calls::{self, FutexLock};

/// The mutexes of a recorded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Had {
    /// Mutexes of this project, in a program in Rust. Which policy each has, a recording does not
    /// say: they are compared with the default.
    Default,
    /// Those of the C library, in a program that `stanchion record` ran.
    Pthread,
    /// One in Rust that is not of this project, in such a program.
    Rust,
    /// A lock in such a program that is no mutex, or that cannot be replaced.
    Other,
    /// Those that `stanchion record --lock` put in their place: the policy's place in [`COLUMNS`].
    Replaced(usize),
}

/// Each policy of [`COLUMNS`] as an argument of `stanchion record --lock`.
const LOCKS: [Option<LockPolicy>; POLICIES] = [
    Some(LockPolicy::AlwaysBlock),
    Some(LockPolicy::AlwaysSpin),
    Some(LockPolicy::FixedSpinHalf),
    Some(LockPolicy::FixedSpin),
    // It needs a threshold.
    None,
    Some(LockPolicy::LastThreeSamples),
    Some(LockPolicy::RandomWalk),
    Some(LockPolicy::OptimalOnlineApproximation),
    Some(LockPolicy::Randomized),
    Some(LockPolicy::Adaptive),
];

/// Returns what `stanchion record --lock` calls a policy.
pub(crate) fn lock(policy: usize) -> Option<&'static str> {
    LOCKS[policy].map(LockPolicy::name)
}

impl Had {
    /// Reads what a recording says of a lock: the mutexes of its program, and its name there.
    pub(crate) fn of(mutexes: Option<&str>, name: &str) -> Self {
        match (mutexes, calls::futex_lock(name)) {
            (None, _) | (_, Some(FutexLock::Ours)) => Self::Default,
            (_, Some(FutexLock::Mutex)) => Self::Rust,
            (_, Some(FutexLock::Other)) => Self::Other,
            (Some(mutexes), None) => Self::of_pthread(mutexes),
        }
    }

    fn of_pthread(mutexes: &str) -> Self {
        match mutexes {
            Recording::PTHREAD => Self::Pthread,
            name => (0..POLICIES)
                .find(|&policy| lock(policy) == Some(name))
                .map_or(Self::Pthread, Self::Replaced),
        }
    }

    /// Returns the policy that costs what these mutexes cost, as a place in [`COLUMNS`]. Those of
    /// the C library block at once, and of others a recording has only the waits that block.
    pub(crate) const fn policy(self) -> usize {
        match self {
            Self::Default => DEFAULT,
            Self::Pthread | Self::Rust | Self::Other => BLOCK,
            Self::Replaced(policy) => policy,
        }
    }

    /// Names them in a sentence.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Default => "the default, `Mutex<T>` (`Adaptive`)".to_owned(),
            Self::Pthread => "its own mutexes (like `AlwaysBlock`)".to_owned(),
            Self::Rust | Self::Other => "its own lock (like `AlwaysBlock`)".to_owned(),
            Self::Replaced(policy) => format!("the replaced ones (`{}`)", COLUMNS[policy].policy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_names_the_mutexes_as_the_option_does() {
        assert_eq!(Had::of(None, "queue"), Had::Default);
        assert_eq!(Had::of(Some("pthread"), "x: lock"), Had::Pthread);
        for (policy, column) in COLUMNS.iter().enumerate() {
            let Some(name) = lock(policy) else { continue };
            assert_eq!(Had::of(Some(name), "x: lock"), Had::Replaced(policy));
            let spelled = column.policy.to_lowercase().replace("<50>", "half");
            assert_eq!(name.replace('-', ""), spelled);
        }
        assert_eq!(Had::of(Some("pthread"), "x: std Mutex in y"), Had::Rust);
        assert_eq!(Had::of(Some("fixed-spin"), "x: std RwLock in y"), Had::Other);
        assert_eq!(Had::of(Some("pthread"), "x: stanchion lock in y"), Had::Default);
        assert_eq!(Had::of(Some("a later one"), "x: lock"), Had::Pthread);
    }
}
