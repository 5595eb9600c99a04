//! The table of the locks: a lock is registered here, and nowhere else.
//!
//! Tests, models, torture, benchmarks, experiments, costs and the examples expand the table with
//! [`__locks!`](crate::__locks). Each of them takes the fields that it needs. `tests/table.rs`
//! fails if a lock of the crate has no row.
//!
//! # The fields of a row
//!
//! - `TEST: TYPE`: the name of the lock's tests, and its type with the caller's parameters.
//! - `command`: the name at a command line, for torture, ThreadSanitizer and the examples.
//! - `name`: the type as the docs write it, for costs and the study.
//! - `public`: the lock's module, raw lock, mutex, guard, and line in `--help`. Constructors,
//!   benchmarks and the examples take the rows in which it is not empty. It is empty in a row that
//!   is one more way of waiting of another row's lock.
//! - `guard`: what the guard carries, and where it may go, for the properties and the models.
//!   - `plain`: the guard carries nothing, and another thread may drop it.
//!   - `carries`: the guard carries a value, and another thread may drop it.
//!   - `stays`: the guard carries nothing, and stays with its thread.
//!   - `asks`: as `stays`; the holder has asked not to be preempted.
//! - `deadline`: `Timed` if a waiter can give up, else `Untimed`, for torture.
//! - `preemptions`: the bound of the larger models.
//! - `sanitizer`: `race` if ThreadSanitizer understands the lock, because it has no fences and asks
//!   the kernel for nothing. Else it is empty.
//! - `order`: `FIRST_COME` or `ANY_ORDER`, in which waiters are served, for the study.
//! - `way`: the paper's way of waiting, and its title in the study. It is empty for other locks.

/// Expands to `callback! { [context] {row} {row} … }`, with a row for each lock of this crate.
///
/// - `__locks!(callback)` and `__locks!(callback [context])` give the locks their default
///   parameters.
/// - `__locks!(callback [context], wait: W, slots: N, delay_ns: D)` gives them the waiting policy
///   `W`, `N` slots where a lock has slots, and Ethernet backoff in units of `D` nanoseconds.
///
/// A callback matches a row from its first field to the last one that it needs, and the rest by
/// `$($rest:tt)*`. The types are those of the package that the call names: this crate or one of its
/// twins.
#[doc(hidden)]
#[macro_export]
macro_rules! __locks {
    ($($callback:tt)::+ $([$($context:tt)*])?) => {
        $crate::__locks! {
            $($callback)::+ [$($($context)*)?],
            wait: $crate::Patient, slots: 16, delay_ns: $crate::contention::MEASURED
        }
    };
    (
        $($callback:tt)::+ [$($context:tt)*],
        wait: $wait:ty, slots: $slots:literal, delay_ns: $delay_ns:expr
    ) => {
        $($callback)::+! {
            [$($context)*]
            {
                exchange: $crate::TestAndSet<$crate::contention::Exchange, $wait>,
                command: "test-and-set-exchange",
                name: "TestAndSet<Exchange>",
                public: [],
                guard: plain,
                deadline: Timed,
                preemptions: 3,
                sanitizer: [race],
                order: ANY_ORDER,
                way: [Exchange, "TestAndSet, exchange"],
            }
            {
                read: $crate::TestAndSet<$crate::contention::Read, $wait>,
                command: "test-and-set-read",
                name: "TestAndSet<Read>",
                public: [],
                guard: plain,
                deadline: Timed,
                preemptions: 3,
                sanitizer: [race],
                order: ANY_ORDER,
                way: [Read, "TestAndSet, read"],
            }
            {
                ethernet: $crate::TestAndSet<$crate::contention::Ethernet<{ $delay_ns }>, $wait>,
                command: "test-and-set",
                name: "TestAndSet<Ethernet>",
                public: [
                    test_and_set, TestAndSet, TestAndSetMutex, TestAndSetMutexGuard,
                    "ours: a bit, Ethernet-style backoff; unfair, 1 byte"
                ],
                guard: plain,
                deadline: Timed,
                preemptions: 3,
                sanitizer: [race],
                order: ANY_ORDER,
                way: [Backoff, "TestAndSet, backoff"],
            }
            {
                polling: $crate::TestAndSet<$crate::contention::Polling, $wait>,
                command: "test-and-set-polling",
                name: "TestAndSet<Polling>",
                public: [],
                guard: plain,
                deadline: Timed,
                preemptions: 3,
                sanitizer: [race],
                order: ANY_ORDER,
                way: [Polling, "TestAndSet, polling"],
            }
            {
                preemption_safe: $crate::PreemptionSafe<$crate::contention::Polling, $wait>,
                command: "preemption-safe",
                name: "PreemptionSafe",
                public: [
                    preemption_safe, PreemptionSafe, PreemptionSafeMutex, PreemptionSafeMutexGuard,
                    "ours: a bit, polled with backoff; its holder asks not to be preempted"
                ],
                guard: asks,
                deadline: Timed,
                preemptions: 3,
                sanitizer: [],
                order: ANY_ORDER,
                way: [],
            }
            {
                recovering: $crate::Recovering<$wait>,
                command: "recovering",
                name: "Recovering",
                public: [
                    recovering, Recovering, RecoveringMutex, RecoveringMutexGuard,
                    "ours: a bit; waiters bring a preempted holder to their own processor"
                ],
                guard: stays,
                deadline: Untimed,
                preemptions: 2,
                sanitizer: [],
                order: ANY_ORDER,
                way: [],
            }
            {
                ticket: $crate::Ticket<$wait>,
                command: "ticket",
                name: "Ticket",
                public: [
                    ticket, Ticket, TicketMutex, TicketMutexGuard,
                    "ours: first come, first served, proportional backoff"
                ],
                guard: plain,
                deadline: Untimed,
                preemptions: 3,
                sanitizer: [race],
                order: FIRST_COME,
                way: [],
            }
            {
                anderson: $crate::Anderson<$slots, $wait>,
                command: "anderson",
                name: "Anderson",
                public: [
                    anderson, Anderson, AndersonMutex, AndersonMutexGuard,
                    "ours: array lock, a slot per waiter"
                ],
                guard: carries,
                deadline: Untimed,
                preemptions: 3,
                sanitizer: [race],
                order: FIRST_COME,
                way: [],
            }
            {
                clh: $crate::Clh<$wait>,
                command: "clh",
                name: "Clh",
                public: [
                    clh, Clh, ClhMutex, ClhMutexGuard,
                    "ours: queue lock, waits on its predecessor's node"
                ],
                guard: carries,
                deadline: Timed,
                preemptions: 3,
                sanitizer: [race],
                order: FIRST_COME,
                way: [],
            }
            {
                mcs: $crate::Mcs<$wait>,
                command: "mcs",
                name: "Mcs",
                public: [
                    mcs, Mcs, McsMutex, McsMutexGuard,
                    "ours: queue lock, waits on its own node"
                ],
                guard: plain,
                deadline: Untimed,
                preemptions: 3,
                sanitizer: [race],
                order: FIRST_COME,
                way: [],
            }
            {
                time_published_mcs: $crate::TimePublishedMcs<$wait>,
                command: "time-published-mcs",
                name: "TimePublishedMcs",
                public: [
                    time_published_mcs, TimePublishedMcs, TimePublishedMcsMutex,
                    TimePublishedMcsMutexGuard,
                    "ours: queue lock that passes over preempted waiters"
                ],
                guard: plain,
                deadline: Untimed,
                preemptions: 2,
                sanitizer: [],
                order: ANY_ORDER,
                way: [],
            }
        }
    };
}
