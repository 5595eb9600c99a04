//! The names that the command knows. The spin locks are those of the table of `stanchion-spin`.

use crate::busted;
use crate::subject::{Subject, Timed, Untimed};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock, OptimalOnlineApproximation};
use stanchion_spin::Anderson;
use std::sync::Arc;

/// A lock and its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in the command.
    pub name: &'static str,
    /// True if the lock is broken on purpose. Such a lock is never part of "all locks".
    pub busted: bool,
    /// Makes a free lock.
    pub free: fn() -> Arc<dyn Subject>,
}

macro_rules! locks {
    ($($name:literal: $wrap:ident<$raw:ty>),+ $(,)?; busted $($broken:literal: $broken_raw:ty),+ $(,)?) => {
        /// All locks, the broken ones last.
        pub const LOCKS: &[Entry] = &[
            $(Entry { name: $name, busted: false, free: || Arc::new($wrap::<$raw>::free()) },)+
            $(Entry { name: $broken, busted: true, free: || Arc::new(Untimed::<$broken_raw>::free()) },)+
        ];
    };
}

/// Puts the spin locks of the table before the others.
macro_rules! spin_locks_first {
    ([$($others:tt)*] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: $public:tt,
        guard: $guard:ident,
        deadline: $deadline:ident,
        $($rest:tt)*
    })+) => {
        locks! { $($command: $deadline<$lock>,)+ $($others)* }
    };
}

stanchion_spin::__locks! {
    spin_locks_first [
        // Fewer slots than threads: waiters share them.
        "anderson-2": Untimed<Anderson<2>>,
        "mutex": Timed<RawPolicyMutex<Adaptive>>,
        "mutex-always-block": Timed<RawPolicyMutex<AlwaysBlock>>,
        "mutex-optimal-online-approximation": Timed<RawPolicyMutex<OptimalOnlineApproximation>>,
        "parking-lot": Timed<parking_lot::RawMutex>,
        "parking-lot-fair": Timed<parking_lot::RawFairMutex>;
        busted
        "busted": busted::RawBusted,
        "busted-wake": busted::RawBustedWake,
        "busted-fair": busted::RawBustedFair,
    ]
}

/// Returns the lock with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Entry> {
    LOCKS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Attempt;
    use std::time::Duration;

    #[test]
    fn names_are_unique_and_found() {
        for entry in LOCKS {
            let same = LOCKS.iter().filter(|other| other.name == entry.name).count();
            assert_eq!(same, 1, "{}", entry.name);
            assert_eq!(named(entry.name).map(|found| found.name), Some(entry.name));
        }
        assert!(named("no-such-lock").is_none());
    }

    #[test]
    fn each_lock_opens_again() {
        for entry in LOCKS {
            let lock = (entry.free)();
            let had = |attempt| {
                let mut sections = 0;
                let had = lock.run(attempt, &mut || sections += 1);
                assert_eq!(sections, u32::from(had), "{}", entry.name);
                had
            };
            assert!(had(Attempt::Wait), "{}", entry.name);
            assert!(had(Attempt::Try), "{} stayed shut", entry.name);
            assert!(had(Attempt::TryFor(Duration::from_millis(1))), "{} stayed shut", entry.name);
            lock.run(Attempt::Wait, &mut || {
                assert!(!had(Attempt::Try), "{} was had twice", entry.name)
            });
        }
    }
}
