//! The table of the strategies: a strategy is registered here, and nowhere else.
//!
//! Tests, models, torture, contests, costs and the examples expand the table with
//! [`__strategies!`](crate::__strategies). Each of them takes the fields that it needs.
//! `tests/table.rs` fails if a strategy of the crate has no row.
//!
//! # The fields of a row
//!
//! - `TEST: TYPE`: the name of the strategy's tests, and its type with the caller's lock.
//! - `type`: the type without parameters.
//! - `cost`: the name in the table of costs, where locks are test-and-set locks.
//! - `contest`: the name in contests with the pools of others.
//! - `command`: the name in `--strategy` of the examples, and the line in `--help`.
//! - `hand`: for a strategy that keeps stacks and takes a lock, whether a worker that finds no task
//!   keeps its stack. It is empty for others.

/// Expands to `callback! { [context] {row} {row} … }`, with a row for each strategy of this crate.
/// `[context]` may be left out of the call.
///
/// With `lock: L` at the end of the call, a strategy that has locks has locks of the type `L`.
///
/// A callback matches a row from its first field to the last one that it needs, and the rest by
/// `$($rest:tt)*`. The types are those of the package that the call names: this crate or one of its
/// twins.
#[doc(hidden)]
#[macro_export]
macro_rules! __strategies {
    ($($callback:tt)::+ $([$($context:tt)*])? $(, lock: $lock:ty)?) => {
        $($callback)::+! {
            [$($($context)*)?]
            {
                single_lock: $crate::strategy::SingleLock$(<$lock>)?,
                type: SingleLock,
                cost: "SingleLock<TestAndSet>",
                contest: "single lock",
                command: ["single-lock", "one queue, one list of free blocks, one lock for both"],
                hand: [false],
            }
            {
                multiple_locks: $crate::strategy::MultipleLocks$(<$lock>)?,
                type: MultipleLocks,
                cost: "MultipleLocks<TestAndSet>",
                contest: "multiple locks",
                command: ["multiple-locks", "the same with a lock for each"],
                hand: [false],
            }
            {
                local_free_list: $crate::strategy::LocalFreeList$(<$lock>)?,
                type: LocalFreeList,
                cost: "LocalFreeList<TestAndSet>",
                contest: "local free list",
                command: [
                    "local-free-list",
                    "one queue with a lock, a list of free blocks for each worker"
                ],
                hand: [true],
            }
            {
                idle_queue: $crate::strategy::IdleQueue$(<$lock>)?,
                type: IdleQueue,
                cost: "IdleQueue<TestAndSet>",
                contest: "idle queue",
                command: ["idle-queue", "idle workers queue up for work that is handed to them"],
                hand: [true],
            }
            {
                local_ready_queue: $crate::strategy::LocalReadyQueue$(<$lock>)?,
                type: LocalReadyQueue,
                cost: "LocalReadyQueue<TestAndSet>",
                contest: "local ready queues",
                command: [
                    "local-ready-queue", "a queue with a lock for each worker, and idle ones scan all"
                ],
                hand: [true],
            }
            {
                central_else_local: $crate::strategy::CentralElseLocal$(<$lock>)?,
                type: CentralElseLocal,
                cost: "CentralElseLocal<TestAndSet>",
                contest: "central else local",
                command: [
                    "central-else-local",
                    "one queue, and one for each worker that finds its lock busy"
                ],
                hand: [true],
            }
            {
                probe_idle_else_central: $crate::strategy::ProbeIdleElseCentral$(<$lock>)?,
                type: ProbeIdleElseCentral,
                cost: "ProbeIdleElseCentral<TestAndSet>",
                contest: "probe idle else central",
                command: [
                    "probe-idle-else-central",
                    "work is handed to a worker found idle by probing, else queued centrally"
                ],
                hand: [true],
            }
            {
                work_stealing: $crate::strategy::WorkStealing,
                type: WorkStealing,
                cost: "threadpool::WorkStealing",
                contest: "work stealing",
                command: [
                    "work-stealing",
                    "each worker has its own work, and takes another's when it has none"
                ],
                hand: [],
            }
        }
    };
}
