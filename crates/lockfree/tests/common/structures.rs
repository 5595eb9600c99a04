//! The structures of the table (`src/table.rs`), and the operations that the tests over all of them
//! use.
//!
//! Included by such tests, here and in the simulated twin. `crate::lockfree` is the crate, or its
//! twin. A test uses only a part of it.
#![allow(dead_code, unused_macros, unused_imports)]

use core::fmt::Debug;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::lockfree::{
    ConcurrentQueue, ConcurrentStack, Counter, Full, PriorityQueue, Progress, heap,
};

/// Calls `callback!` with each kind of structure that takes any values, as the table does. The
/// context is the kind, its constructor, and `argument`. The values are of a type `T`. Bounded
/// structures have room for 4.
macro_rules! all_structures {
    ($callback:ident $($argument:tt)*) => {
        $crate::lockfree::__structures!(stack: $callback [stack default() $($argument)*], T);
        // Another lock than the default.
        $callback! { [stack default() $($argument)*]
            { locked_by_spinning:
                $crate::lockfree::stack::LockedStack<T, stanchion_spin::TestAndSet>,
              name: "LockedStack TestAndSet", cost: [] }
        }
        $crate::lockfree::__structures!(queue: $callback [queue default() $($argument)*], T);
        $crate::lockfree::__structures!(ring: $callback [queue with_capacity(4) $($argument)*], T);
        $crate::lockfree::__structures!(heap: $callback [heap default() $($argument)*], T);
    };
}
pub(crate) use all_structures;

/// Calls a test that is generic over the [`Family`], for each.
macro_rules! each {
    ($test:ident) => {{
        $crate::structures::all_structures!(each $test);
    }};
    ([$kind:ident $new:ident $room:tt $test:ident]
        $({ $row:ident: $type:ty, name: $name:literal, $($rest:tt)* })+) => {$({
        let _tested = $crate::structures::Tested($name);
        $test::<$crate::structures::$row>();
    })+};
}
pub(crate) use each;

/// Says which structure it was when a test fails.
pub(crate) struct Tested(pub(crate) &'static str);

impl Drop for Tested {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was {}", self.0);
        }
    }
}

/// In which order values come out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    LastIn,
    FirstIn,
    SmallestKey,
}

/// A structure with values of type `T`. Where values have no keys, these are ignored.
pub(crate) trait Shared<T>:
    Send + Sync + UnwindSafe + RefUnwindSafe + Sized + Debug
{
    /// Puts `value` in; gives it back if there is no room.
    fn put(&self, key: u64, value: T) -> Result<(), T>;
    /// Takes one out.
    fn take(&self) -> Option<T>;
    /// Returns whether it is empty.
    fn look(&self) -> bool;
    /// `put` by the only owner.
    fn put_mut(&mut self, key: u64, value: T) -> Result<(), T>;
    /// `take` by the only owner.
    fn take_mut(&mut self) -> Option<T>;
    /// Looks at what `take_mut` would take.
    fn peek_mut(&mut self) -> Option<&mut T>;
    /// `take_mut`, if it would take what `predicate` is true of.
    fn take_if(&mut self, predicate: impl FnOnce(&mut T) -> bool) -> Option<T>;
    /// Returns the most that it can hold, if that is bounded.
    fn room(&self) -> Option<usize> {
        None
    }
    /// The first few of its `drain`, which is then dropped.
    fn drained(&self, count: usize) -> Vec<T>;
    /// Forgets a `drain` that has begun. Returns the value that it had taken.
    fn forget_drain(&self) -> Option<T>;
    /// The first few of its `into_iter`, which is then dropped.
    fn into_some(self, count: usize) -> Vec<T>;
}

/// A kind of structure, for any values.
pub(crate) trait Family: 'static {
    const NAME: &'static str;
    const ORDER: Order;
    const PROGRESS: Progress;
    type Of<T: Send + 'static>: Shared<T> + 'static;

    fn make<T: Send + 'static>() -> Self::Of<T>;
}

/// The result of a `push_mut`, of a bounded queue or of another structure.
struct Pushed<T>(Result<(), T>);

impl<T> From<()> for Pushed<T> {
    fn from((): ()) -> Self {
        Self(Ok(()))
    }
}

impl<T> From<Result<(), Full<T>>> for Pushed<T> {
    fn from(outcome: Result<(), Full<T>>) -> Self {
        Self(outcome.map_err(|Full(value)| value))
    }
}

macro_rules! shared {
    (stack $type:ty) => {
        impl<T: Send + 'static> Shared<T> for $type {
            fn put(&self, _: u64, value: T) -> Result<(), T> {
                ConcurrentStack::push(self, value);
                Ok(())
            }
            fn take(&self) -> Option<T> {
                ConcurrentStack::pop(self)
            }
            fn put_mut(&mut self, _: u64, value: T) -> Result<(), T> {
                self.push_mut(value);
                Ok(())
            }
            shared!(mut);
            shared!(ConcurrentStack, |item| item);
        }
    };
    (queue $type:ty) => {
        impl<T: Send + 'static> Shared<T> for $type {
            fn put(&self, _: u64, value: T) -> Result<(), T> {
                ConcurrentQueue::try_push(self, value).map_err(|Full(value)| value)
            }
            fn take(&self) -> Option<T> {
                ConcurrentQueue::pop(self)
            }
            fn put_mut(&mut self, _: u64, value: T) -> Result<(), T> {
                Pushed::from(self.push_mut(value)).0
            }
            shared!(mut);
            fn room(&self) -> Option<usize> {
                ConcurrentQueue::capacity(self)
            }
            shared!(ConcurrentQueue, |item| item);
        }
    };
    (heap $type:ty) => {
        impl<T: Send + 'static> Shared<T> for $type {
            fn put(&self, key: u64, value: T) -> Result<(), T> {
                PriorityQueue::push(self, key, value);
                Ok(())
            }
            fn take(&self) -> Option<T> {
                PriorityQueue::pop_min(self).map(|(_, value)| value)
            }
            fn put_mut(&mut self, key: u64, value: T) -> Result<(), T> {
                self.push_mut(key, value);
                Ok(())
            }
            fn take_mut(&mut self) -> Option<T> {
                self.pop_min_mut().map(|(_, value)| value)
            }
            fn peek_mut(&mut self) -> Option<&mut T> {
                self.peek_min_mut().map(|(_, value)| value)
            }
            fn take_if(&mut self, predicate: impl FnOnce(&mut T) -> bool) -> Option<T> {
                self.pop_min_if_mut(|_, value| predicate(value)).map(|(_, value)| value)
            }
            shared!(PriorityQueue, |item| item.1);
        }
    };
    (mut) => {
        fn take_mut(&mut self) -> Option<T> {
            self.pop_mut()
        }
        fn peek_mut(&mut self) -> Option<&mut T> {
            self.peek_mut()
        }
        fn take_if(&mut self, predicate: impl FnOnce(&mut T) -> bool) -> Option<T> {
            self.pop_if_mut(predicate)
        }
    };
    ($kind:ident, |$item:ident| $value:expr) => {
        fn look(&self) -> bool {
            $kind::is_empty(self)
        }
        fn drained(&self, count: usize) -> Vec<T> {
            self.drain().take(count).map(|$item| $value).collect()
        }
        fn forget_drain(&self) -> Option<T> {
            // Never dropped.
            let mut drain = core::mem::ManuallyDrop::new(self.drain());
            drain.next().map(|$item| $value)
        }
        fn into_some(self, count: usize) -> Vec<T> {
            self.into_iter().take(count).map(|$item| $value).collect()
        }
    };
}

macro_rules! order {
    (stack) => {
        Order::LastIn
    };
    (queue) => {
        Order::FirstIn
    };
    (heap) => {
        Order::SmallestKey
    };
}

macro_rules! progress {
    (stack $type:ty) => {
        <$type as ConcurrentStack>::PROGRESS
    };
    (queue $type:ty) => {
        <$type as ConcurrentQueue>::PROGRESS
    };
    (heap $type:ty) => {
        <$type as PriorityQueue>::PROGRESS
    };
}

macro_rules! families {
    ([$kind:ident $new:ident $room:tt]
        $({ $row:ident: $type:ty, name: $name:literal, $($rest:tt)* })+) => {$(
        #[allow(non_camel_case_types)]
        pub(crate) struct $row;

        shared!($kind $type);

        impl Family for $row {
            const NAME: &'static str = $name;
            const ORDER: Order = order!($kind);
            const PROGRESS: Progress = {
                type T = u64;
                progress!($kind $type)
            };
            type Of<T: Send + 'static> = $type;

            fn make<T: Send + 'static>() -> $type {
                <$type>::$new $room
            }
        }
    )+};
}
all_structures!(families);

/// A structure with numbers in it.
pub(crate) trait Subject: Send + Sync {
    /// Puts `value` in; `false` if there was no room.
    fn put(&self, value: u64) -> bool;
    /// Takes one out.
    fn take(&self) -> Option<u64>;
    /// Looks without changing anything: whether it is empty.
    fn look(&self) -> bool;
}

/// One of the structures, whatever its type.
#[derive(Clone)]
pub(crate) struct Case {
    /// The structure's name.
    pub(crate) name: &'static str,
    /// The progress that it states.
    pub(crate) progress: Progress,
    /// Makes an empty one.
    pub(crate) make: fn() -> Arc<dyn Subject>,
}

struct OfFamily<S>(S);

impl<S: Shared<u64>> Subject for OfFamily<S> {
    fn put(&self, value: u64) -> bool {
        // Keys that do not come in order.
        self.0.put(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32, value).is_ok()
    }
    fn take(&self) -> Option<u64> {
        self.0.take()
    }
    fn look(&self) -> bool {
        self.0.look()
    }
}

/// Its values are cloned, so it is for some values only.
impl Subject for heap::CopiedHeap<u64, u64> {
    fn put(&self, value: u64) -> bool {
        self.push(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32, value);
        true
    }
    fn take(&self) -> Option<u64> {
        self.pop_min().map(|(_, value)| value)
    }
    fn look(&self) -> bool {
        PriorityQueue::is_empty(self)
    }
}

struct OfCounter<C>(C);

impl<C: Counter + Send + Sync> Subject for OfCounter<C> {
    fn put(&self, _: u64) -> bool {
        self.0.increment();
        true
    }
    fn take(&self) -> Option<u64> {
        self.0.add(2);
        None
    }
    fn look(&self) -> bool {
        self.0.get() == 0
    }
}

/// Adds the cases of the structures, or of the counters, to a list.
macro_rules! cases {
    ([$kind:ident $new:ident $room:tt $all:ident]
        $({ $row:ident: $type:ty, name: $name:literal, $($rest:tt)* })+) => {
        $all.extend([$(Case {
            name: $name,
            progress: $row::PROGRESS,
            make: || Arc::new(OfFamily($row::make::<u64>())),
        }),+]);
    };
    ([$all:ident] $({ $row:ident: $type:ty, name: $name:literal, $($rest:tt)* })+) => {
        $all.extend([$(Case {
            name: $name,
            progress: <$type as Counter>::PROGRESS,
            make: || Arc::new(OfCounter(<$type>::default())),
        }),+]);
    };
}

/// The structures, and the counters. `MultiQueue` has its own tests, in `tests/together/heaps.rs`.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    all_structures!(cases all);
    all.push(Case {
        name: "CopiedHeap",
        progress: <heap::CopiedHeap<u64, u64> as PriorityQueue>::PROGRESS,
        make: || Arc::new(heap::CopiedHeap::new()),
    });
    crate::lockfree::__structures!(counter: cases [all]);
    crate::lockfree::__structures!(other_counter: cases [all]);
    all
}
