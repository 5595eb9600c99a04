//! Our locks, one a line: the only place where a lock of `stanchion-spin` enters the study, on this
//! computer and on simulated machines.

/// The ways to wait that section 4 of Anderson, Lazowska and Levy compares, and the variation it
/// proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// An exchange in a loop (4.1).
    Exchange,
    /// Reads until the lock is free, then an exchange (4.2).
    Read,
    /// Ethernet backoff (4.4).
    Backoff,
    /// A delay whenever the lock reads busy (4.4, the variation on persistence).
    Polling,
}

/// The flag of a lock that serves its waiters in the order in which they came.
pub const FIRST_COME: bool = true;
/// The flag of a lock that may serve its waiters in another order.
pub const ANY_ORDER: bool = false;

/// Expands to a slice of our locks. They come from `$spin`, the real crate or the one for simulated
/// machines. Their waiters wait by the policy `$wait`. A lock with a bounded number of threads has
/// `$slots` slots. The unit of the backoff's delays is `$delay` nanoseconds. `$lock` makes an entry
/// of each lock. The entries `$other` come last.
#[macro_export]
macro_rules! our_locks {
    ($spin:ident, $wait:ty, $slots:literal, $delay:expr, $lock:ident $(, $other:expr)* $(,)?) => {
        &[
            $lock::<$spin::TestAndSet<$spin::contention::Exchange, $wait>>("TestAndSet, exchange", Some($crate::list::Way::Exchange), $crate::list::ANY_ORDER),
            $lock::<$spin::TestAndSet<$spin::contention::Read, $wait>>("TestAndSet, read", Some($crate::list::Way::Read), $crate::list::ANY_ORDER),
            $lock::<$spin::TestAndSet<$spin::contention::Ethernet<{ $delay }>, $wait>>("TestAndSet, backoff", Some($crate::list::Way::Backoff), $crate::list::ANY_ORDER),
            $lock::<$spin::TestAndSet<$spin::contention::Polling, $wait>>("TestAndSet, polling", Some($crate::list::Way::Polling), $crate::list::ANY_ORDER),
            $lock::<$spin::PreemptionSafe<$spin::contention::Polling, $wait>>("PreemptionSafe", None, $crate::list::ANY_ORDER),
            $lock::<$spin::Recovering<$wait>>("Recovering", None, $crate::list::ANY_ORDER),
            $lock::<$spin::Ticket<$wait>>("Ticket", None, $crate::list::FIRST_COME),
            $lock::<$spin::Anderson<$slots, $wait>>("Anderson", None, $crate::list::FIRST_COME),
            $lock::<$spin::Clh<$wait>>("Clh", None, $crate::list::FIRST_COME),
            $lock::<$spin::Mcs<$wait>>("Mcs", None, $crate::list::FIRST_COME),
            $lock::<$spin::TimePublishedMcs<$wait>>("TimePublishedMcs", None, $crate::list::ANY_ORDER),
            $($other),*
        ]
    };
}
