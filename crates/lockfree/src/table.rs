//! The table of the structures: a stack, queue, heap or counter is registered here, and nowhere
//! else.
//!
//! Tests, models of counters, contests and costs expand the table with
//! [`__structures!`](crate::__structures). Each of them takes the kinds and the fields that it
//! needs. `tests/together/listed.rs` fails if a structure of the crate has no row. A list that
//! names structures itself says in its header why.
//!
//! # The kinds
//!
//! - `stack`: a stack.
//! - `queue`: a queue that grows.
//! - `ring`: a queue with a capacity, made by `with_capacity`. All other kinds have a `Default`.
//! - `heap`: a priority queue that takes any values, and gives the smallest key first.
//! - `other_heap`: a priority queue that clones its values, or has a relaxed order.
//! - `counter`: a counter that hands out numbers, which is `FetchAdd`.
//! - `other_counter`: a counter that only gives its sum.
//!
//! # The fields of a row
//!
//! - `TEST: TYPE`: the name of the structure's tests, and its type with the caller's parameters.
//! - `name`: the name in the messages of tests, and in contests.
//! - `cost`: the name in the table of costs, where stacks, queues and heaps under a lock have a
//!   test-and-set lock. It is empty for a structure that takes no part.

/// Expands to `callback! { [context] {row} {row} … }`, with a row for each structure of one kind.
///
/// - `__structures!(stack: callback [context], T)` gives stacks the values `T`. So it does for
///   `queue`, `ring`, `heap` and `other_heap`. The keys of heaps are `u64`.
/// - `__structures!(counter: callback [context])` has no values. So has `other_counter`.
///
/// `[context]` may be left out. With `lock: L` at the end of the call, a structure that has locks
/// has locks of the type `L`. A ring and the segmented queue keep their own.
///
/// A callback matches a row from its first field to the last one that it needs, and the rest by
/// `$($rest:tt)*`. The types are those of the package that the call names: this crate or one of its
/// twins.
#[doc(hidden)]
#[macro_export]
macro_rules! __structures {
    (stack: $callback:ident $([$($context:tt)*])?, $value:ty $(, lock: $lock:ty)?) => {
        $callback! { [$($($context)*)?]
            { locked: $crate::stack::LockedStack<$value $(, $lock)?>,
              name: "LockedStack", cost: ["LockedStack<TestAndSet> push, pop"] }
            { treiber_with_hazards: $crate::stack::TreiberStack<$value, $crate::memory::Hazard>,
              name: "TreiberStack hazards", cost: ["lockfree::TreiberStack, hazards push, pop"] }
            { treiber_with_counts: $crate::stack::TreiberStack<$value, $crate::memory::Counted>,
              name: "TreiberStack counts", cost: ["lockfree::TreiberStack, counts push, pop"] }
            { elimination_with_hazards:
                $crate::stack::EliminationStack<$value, $crate::memory::Hazard>,
              name: "EliminationStack hazards",
              cost: ["lockfree::EliminationStack, hazards push, pop"] }
            { elimination_with_counts:
                $crate::stack::EliminationStack<$value, $crate::memory::Counted>,
              name: "EliminationStack counts", cost: [] }
            { herlihy_with_hazards: $crate::stack::HerlihyStack<$value, $crate::memory::Hazard>,
              name: "HerlihyStack hazards", cost: [] }
            { herlihy_with_counts: $crate::stack::HerlihyStack<$value, $crate::memory::Counted>,
              name: "HerlihyStack counts", cost: ["lockfree::HerlihyStack, counts push, pop"] }
        }
    };
    (queue: $callback:ident $([$($context:tt)*])?, $value:ty $(, lock: $lock:ty)?) => {
        $callback! { [$($($context)*)?]
            { faa_array_queue: $crate::queue::FaaArrayQueue<$value>,
              name: "FaaArrayQueue", cost: ["lockfree::FaaArrayQueue push, pop"] }
            { locked_queue: $crate::queue::LockedQueue<$value $(, $lock)?>,
              name: "LockedQueue", cost: ["LockedQueue<TestAndSet> push, pop"] }
            { segmented_queue: $crate::queue::SegmentedQueue<$value>,
              name: "SegmentedQueue", cost: ["lockfree::SegmentedQueue push, pop"] }
            { two_lock_queue: $crate::queue::TwoLockQueue<$value $(, $lock)?>,
              name: "TwoLockQueue", cost: [] }
            { michael_scott_with_hazards:
                $crate::queue::MichaelScottQueue<$value, $crate::memory::Hazard>,
              name: "MichaelScottQueue<Hazard>",
              cost: ["lockfree::MichaelScottQueue, hazards push, pop"] }
            { michael_scott_with_counts:
                $crate::queue::MichaelScottQueue<$value, $crate::memory::Counted>,
              name: "MichaelScottQueue<Counted>",
              cost: ["lockfree::MichaelScottQueue, counts push, pop"] }
            { prakash_lee_johnson_with_hazards:
                $crate::queue::PrakashLeeJohnsonQueue<$value, $crate::memory::Hazard>,
              name: "PrakashLeeJohnsonQueue<Hazard>", cost: [] }
            { prakash_lee_johnson_with_counts:
                $crate::queue::PrakashLeeJohnsonQueue<$value, $crate::memory::Counted>,
              name: "PrakashLeeJohnsonQueue<Counted>",
              cost: ["lockfree::PrakashLeeJohnsonQueue, counts push, pop"] }
        }
    };
    (ring: $callback:ident $([$($context:tt)*])?, $value:ty) => {
        $callback! { [$($($context)*)?]
            { locked_ring: $crate::queue::LockedRing<$value>,
              name: "LockedRing", cost: ["lockfree::LockedRing push, pop"] }
            { nikolaev: $crate::queue::NikolaevQueue<$value>,
              name: "NikolaevQueue", cost: ["lockfree::NikolaevQueue push, pop"] }
        }
    };
    (heap: $callback:ident $([$($context:tt)*])?, $value:ty $(, lock: $lock:ty)?) => {
        $callback! { [$($($context)*)?]
            { locked_heap: $crate::heap::LockedHeap<u64, $value $(, $lock)?>,
              name: "LockedHeap", cost: ["LockedHeap<TestAndSet> push, pop"] }
            { locked_array_heap: $crate::heap::LockedArrayHeap<u64, $value $(, $lock)?>,
              name: "LockedArrayHeap", cost: [] }
            { herlihy_heap: $crate::heap::HerlihyHeap<u64, $value>,
              name: "HerlihyHeap", cost: ["lockfree::HerlihyHeap push, pop"] }
        }
    };
    (other_heap: $callback:ident $([$($context:tt)*])?, $value:ty) => {
        $callback! { [$($($context)*)?]
            { multi_queue: $crate::heap::MultiQueue<u64, $value>,
              name: "MultiQueue", cost: ["lockfree::MultiQueue push, pop"] }
            { copied_heap: $crate::heap::CopiedHeap<u64, $value>,
              name: "CopiedHeap", cost: [] }
        }
    };
    (counter: $callback:ident $([$($context:tt)*])? $(, lock: $lock:ty)?) => {
        $callback! { [$($($context)*)?]
            { fetch_add_counter: $crate::counter::FetchAddCounter,
              name: "FetchAddCounter", cost: ["lockfree::FetchAddCounter increment"] }
            { compare_exchange_counter: $crate::counter::CompareExchangeCounter,
              name: "CompareExchangeCounter", cost: ["lockfree::CompareExchangeCounter increment"] }
            { linked_counter: $crate::counter::LinkedCounter,
              name: "LinkedCounter", cost: ["lockfree::LinkedCounter increment"] }
            { locked_counter: $crate::counter::LockedCounter $(<$lock>)?,
              name: "LockedCounter", cost: ["lockfree::LockedCounter increment"] }
        }
    };
    (other_counter: $callback:ident $([$($context:tt)*])?) => {
        $callback! { [$($($context)*)?]
            { sharded_counter: $crate::counter::ShardedCounter,
              name: "ShardedCounter", cost: ["lockfree::ShardedCounter increment"] }
        }
    };
}
