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
    ($($name:literal: $raw:ty;)+) => {$(
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

ours! {
    "TestAndSet": stanchion_spin::TestAndSet;
    "PreemptionSafe": stanchion_spin::PreemptionSafe;
    "Recovering": stanchion_spin::Recovering;
    "Ticket": stanchion_spin::Ticket;
    "Anderson<16>": stanchion_spin::Anderson<16>;
    "Clh": stanchion_spin::Clh;
    "Mcs": stanchion_spin::Mcs;
    "TimePublishedMcs": stanchion_spin::TimePublishedMcs;
    "Mutex": RawPolicyMutex<policy::Adaptive>;
    "Mutex, recorded": RawPolicyMutex<Recorder<policy::Adaptive>>;
    "AlwaysBlock": RawPolicyMutex<policy::AlwaysBlock>;
    "AlwaysSpin": RawPolicyMutex<policy::AlwaysSpin>;
    "FixedSpin": RawPolicyMutex<policy::FixedSpin>;
    "FixedSpin<50>": RawPolicyMutex<policy::FixedSpin<50>>;
    "OptimalOnlineApproximation": RawPolicyMutex<policy::OptimalOnlineApproximation>;
    "LastThreeSamples": RawPolicyMutex<policy::LastThreeSamples>;
    "RandomWalk": RawPolicyMutex<policy::RandomWalk>;
    "Randomized": RawPolicyMutex<policy::Randomized>;
    "HolderAware": RawPolicyMutex<policy::HolderAware>;
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
