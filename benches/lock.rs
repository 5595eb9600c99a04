//! One interface for all locks, of this workspace and of its peers, so that every group measures
//! the same loop.

use lock_api::RawMutex;
use stanchion_competitive::waits::Recorder;
use stanchion_competitive::{RawPolicyMutex, policy};

/// A lock around no data, which a benchmark acquires and releases.
pub(crate) trait Lock: Send + Sync {
    /// The name in tables: `crate::Type` for a peer, the bare type for a lock of this workspace.
    const NAME: &'static str;

    /// Returns a free lock.
    fn make() -> Self;

    /// Runs `section` with the lock held.
    fn with(&self, section: impl FnOnce());
}

macro_rules! ours {
    ($($name:expr => $raw:ty;)+) => {$(
        impl Lock for $raw {
            const NAME: &'static str = $name;

            fn make() -> Self {
                <Self as RawMutex>::INIT
            }

            #[inline]
            fn with(&self, section: impl FnOnce()) {
                let guard = RawMutex::lock(self);
                section();
                // SAFETY: acquired above and released once.
                unsafe { self.unlock(guard) };
            }
        }
    )+};
}

/// Implements [`Lock`] for each lock of the table of `stanchion-spin`.
macro_rules! spin_locks {
    ([] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: [$($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?],
        $($rest:tt)*
    })+) => {
        ours! { $($(name_of!($raw) => $lock;)?)+ }
    };
}

/// Expands to the name of a raw lock in tables. Saved results are found by it.
macro_rules! name_of {
    (Anderson) => {
        "Anderson<16>"
    };
    ($raw:ident) => {
        stringify!($raw)
    };
}

stanchion_spin::__locks!(spin_locks);

/// Implements [`Lock`] for the mutex of each policy of the table of `stanchion-competitive`.
macro_rules! mutexes {
    ([] $({ $test:ident: $policy:ty, name: $name:literal, $($rest:tt)* })+) => {
        ours! { $(mutex_name_of!($test $name) => RawPolicyMutex<$policy>;)+ }
    };
}

/// Expands to the name of the mutex of a policy in tables. The default's is that of the mutex.
macro_rules! mutex_name_of {
    (adaptive $name:literal) => {
        "Mutex"
    };
    ($test:ident $name:literal) => {
        $name
    };
}

stanchion_competitive::__policies!(mutexes);

ours! {
    "Mutex, recorded" => RawPolicyMutex<Recorder<policy::Adaptive>>;
}

macro_rules! guarded {
    ($($name:literal: $mutex:ty, |$lock:ident| $acquire:expr;)+) => {$(
        impl Lock for $mutex {
            const NAME: &'static str = $name;

            fn make() -> Self {
                Self::new(())
            }

            #[inline]
            fn with(&self, section: impl FnOnce()) {
                let $lock = self;
                let _guard = $acquire;
                section();
            }
        }
    )+};
}

guarded! {
    "std::Mutex": std::sync::Mutex<()>, |lock| lock.lock();
    "parking_lot::Mutex": parking_lot::Mutex<()>, |lock| lock.lock();
    "parking_lot::FairMutex": parking_lot::FairMutex<()>, |lock| lock.lock();
    "spin::Mutex": peer_spin::mutex::SpinMutex<()>, |lock| lock.lock();
    "spin::TicketMutex": peer_spin::mutex::TicketMutex<()>, |lock| lock.lock();
    "clhlock::Mutex": clhlock::raw::spins::Mutex<()>, |lock| lock.lock();
}
