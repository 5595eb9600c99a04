//! Our locks: how the table of `stanchion-spin` enters the study, on this computer and on simulated
//! machines.

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

/// Expands to a slice of our locks, in the order of the table of `stanchion-spin`. They come from
/// `$spin`, the real crate or the one for simulated machines. Their waiters wait by the policy
/// `$wait`. A lock with a bounded number of threads has `$slots` slots. The unit of the backoff's
/// delays is `$delay` nanoseconds. `$lock` makes an entry of each lock. The entries `$other` come
/// last.
#[macro_export]
macro_rules! our_locks {
    ($spin:ident, $wait:ty, $slots:literal, $delay:expr, $lock:ident $(, $other:expr)* $(,)?) => {
        $spin::__locks! {
            $crate::__study_locks [$lock $(, $other)*],
            wait: $wait, slots: $slots, delay_ns: $delay
        }
    };
}

/// Expands to a slice of the rows of the table.
#[doc(hidden)]
#[macro_export]
macro_rules! __study_locks {
    ([$lock:ident $(, $other:expr)*] $({
        $test:ident: $type:ty,
        command: $command:literal,
        name: $name:literal,
        public: $public:tt,
        guard: $guard:ident,
        deadline: $deadline:ident,
        preemptions: $preemptions:literal,
        sanitizer: $sanitizer:tt,
        order: $order:ident,
        way: $way:tt,
        $($rest:tt)*
    })+) => {
        &[
            $($crate::__study_locks!($way $name: $lock::<$type>, $order),)+
            $($other),*
        ]
    };
    ([] $name:literal: $lock:ident::<$type:ty>, $order:ident) => {
        $lock::<$type>($name, None, $crate::list::$order)
    };
    ([$way:ident, $title:literal] $name:literal: $lock:ident::<$type:ty>, $order:ident) => {
        $lock::<$type>($title, Some($crate::list::Way::$way), $crate::list::$order)
    };
}
