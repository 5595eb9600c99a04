//! Implementations that a structure gets because it can put one item in and take one out, and those
//! of its kind's trait.

/// Gives a structure `drain`, `into_iter`, `Debug` and `UnwindSafe`; and if it is not bounded, also
/// `Default`, `Extend` and `FromIterator`.
///
/// ```text
/// conveniences! {
///     impl[T, M: Memory] TreiberStack<T, M>;
///     value: T;                                       or `entry: K, V;` for a heap
///     new: TreiberStack::with_memory(M::default());   an empty one
///     debug: |stack| empty = stack.is_empty();        shown by Debug, without blocking
/// }
/// ```
///
/// A structure that is bounded, and cannot be made without a capacity, leaves `new` out. `debug`
/// may be left out.
///
/// Items come out by the structure's own `pop` and `pop_mut`, or by `pop_min` and `pop_min_mut`,
/// and go in by `push`. The structure's own `Send`, `Sync` and `Drop` stay with it.
macro_rules! conveniences {
    (
        impl[$($generics:tt)*] $structure:ident<$($parameter:ident),+>;
        value: $value:ty;
        $($rest:tt)*
    ) => {
        conveniences!(
            @all [$($generics)*] $structure [$structure<$($parameter),+>] [$value]
            pop, pop_mut, value => push(value); $($rest)*
        );
    };
    (
        impl[$($generics:tt)*] $structure:ident<$($parameter:ident),+>;
        entry: $key:ty, $value:ty;
        $($rest:tt)*
    ) => {
        conveniences!(
            @all [$($generics)*] $structure [$structure<$($parameter),+>] [($key, $value)]
            pop_min, pop_min_mut, (key, value) => push(key, value); $($rest)*
        );
    };

    (
        @all [$($generics:tt)*] $name:ident [$structure:ty] [$item:ty]
        $pop:ident, $pop_mut:ident, $pushed:pat => $push:ident($($argument:ident),+);
        $(new: $new:expr;)?
        $(debug: |$debugged:ident| $($shown:ident = $with:expr),+;)?
    ) => {
        impl<$($generics)*> $crate::iter::Take for $structure {
            type Item = $item;

            #[inline]
            fn take(&self) -> Option<$item> {
                self.$pop()
            }

            #[inline]
            fn take_mut(&mut self) -> Option<$item> {
                self.$pop_mut()
            }
        }

        impl<$($generics)*> $structure {
            /// Takes out the items that are there, one at a time, until a look finds nothing. Other
            /// threads may go on meanwhile: the items that they put in come out too.
            ///
            /// See [`Drain`](crate::iter::Drain).
            pub fn drain(&self) -> $crate::iter::Drain<'_, Self> {
                $crate::iter::Drain::of(self)
            }
        }

        // An operation that panics, in a comparison or a closure of the caller's, leaves every item
        // in its place or takes it out whole. Items need not be `RefUnwindSafe`: the structure
        // gives out no reference that outlives a call.
        impl<$($generics)*> ::core::panic::UnwindSafe for $structure {}
        impl<$($generics)*> ::core::panic::RefUnwindSafe for $structure {}

        impl<$($generics)*> IntoIterator for $structure {
            type Item = $item;
            type IntoIter = $crate::iter::IntoIter<Self>;

            fn into_iter(self) -> Self::IntoIter {
                $crate::iter::IntoIter::of(self)
            }
        }

        impl<$($generics)*> ::core::fmt::Debug for $structure {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $(let $debugged = self;)?
                f.debug_struct(stringify!($name))
                    $($(.field(stringify!($shown), &$with))+)?
                    .finish_non_exhaustive()
            }
        }

        conveniences!(
            @unbounded [$($generics)*] [$structure] [$item]
            $pushed => $push($($argument),+); $($new)?
        );
    };

    (
        @unbounded [$($generics:tt)*] [$structure:ty] [$item:ty]
        $pushed:pat => $push:ident($($argument:ident),+); $new:expr
    ) => {
        impl<$($generics)*> Default for $structure {
            fn default() -> Self {
                $new
            }
        }

        impl<$($generics)*> Extend<$item> for $structure {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                (&*self).extend(items);
            }
        }

        /// Other threads may use the structure meanwhile.
        impl<$($generics)*> Extend<$item> for &$structure {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                items.into_iter().for_each(|$pushed| self.$push($($argument),+));
            }
        }

        impl<$($generics)*> FromIterator<$item> for $structure {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                let structure: Self = $new;
                (&structure).extend(items);
                structure
            }
        }
    };
    (@unbounded $($bounded:tt)*) => {};
}

/// Implements the trait of a kind of structure by the structure's own methods of the same names.
///
/// ```text
/// forward! {
///     impl[T, L: RawMutex] ConcurrentQueue for LockedRing<T, L>;
///     item: T;                              or `entry: K, V;` for a heap
///     progress: Progress::Blocking;
///     capacity: |queue| queue.capacity;     of a bounded queue
/// }
/// ```
///
/// The trait is `ConcurrentQueue`, `ConcurrentStack` or `PriorityQueue`. A queue without `capacity`
/// has a `push` that cannot fail, and a queue with it a `try_push`.
macro_rules! forward {
    (
        impl[$($generics:tt)*] ConcurrentQueue for $queue:ty;
        item: $item:ty;
        progress: $progress:expr;
    ) => {
        forward!(@queue [$($generics)*] [$queue] [$item] [$progress] {
            #[inline]
            fn try_push(&self, value: $item) -> Result<(), $crate::Full<$item>> {
                self.push(value);
                Ok(())
            }
        });
    };

    (
        impl[$($generics:tt)*] ConcurrentQueue for $queue:ty;
        item: $item:ty;
        progress: $progress:expr;
        capacity: |$bounded:ident| $capacity:expr;
    ) => {
        forward!(@queue [$($generics)*] [$queue] [$item] [$progress] {
            #[inline]
            fn try_push(&self, value: $item) -> Result<(), $crate::Full<$item>> {
                self.try_push(value)
            }

            #[inline]
            fn capacity(&self) -> Option<usize> {
                let $bounded = self;
                Some($capacity)
            }
        });
    };

    (
        impl[$($generics:tt)*] ConcurrentStack for $stack:ty;
        item: $item:ty;
        progress: $progress:expr;
    ) => {
        impl<$($generics)*> $crate::ConcurrentStack for $stack {
            type Item = $item;

            const PROGRESS: $crate::Progress = $progress;

            #[inline]
            fn push(&self, value: $item) {
                self.push(value);
            }

            #[inline]
            fn pop(&self) -> Option<$item> {
                self.pop()
            }

            #[inline]
            fn is_empty(&self) -> bool {
                self.is_empty()
            }
        }
    };

    (
        impl[$($generics:tt)*] PriorityQueue for $heap:ty;
        entry: $key:ty, $value:ty;
        progress: $progress:expr;
    ) => {
        impl<$($generics)*> $crate::PriorityQueue for $heap {
            type Key = $key;
            type Value = $value;

            const PROGRESS: $crate::Progress = $progress;

            #[inline]
            fn push(&self, key: $key, value: $value) {
                self.push(key, value);
            }

            #[inline]
            fn pop_min(&self) -> Option<($key, $value)> {
                self.pop_min()
            }

            #[inline]
            fn is_empty(&self) -> bool {
                self.is_empty()
            }
        }
    };

    (@queue [$($generics:tt)*] [$queue:ty] [$item:ty] [$progress:expr] { $($by_bound:tt)* }) => {
        impl<$($generics)*> $crate::ConcurrentQueue for $queue {
            type Item = $item;

            const PROGRESS: $crate::Progress = $progress;

            #[inline]
            fn pop(&self) -> Option<$item> {
                self.pop()
            }

            #[inline]
            fn is_empty(&self) -> bool {
                self.is_empty()
            }

            $($by_bound)*
        }
    };
}

/// Gives a structure the methods of its only owner, which need no lock and no atomic step.
///
/// ```text
/// exclusive! {
///     impl[T, M: Memory] TreiberStack<T, M>;
///     value: T;                          or `entry: K, V; key: &K;` for a heap: the type that a
///                                        peek gives for a key
///     push_mut: |stack, value| ...;      returns `()`, or the type of `returns`
///     returns: Result<(), Full<T>>;      may be left out
///     pop_mut: |stack| ...;
///     peek_mut: |stack| ...;             `Option<&mut T>`, or `Option<(&K, &mut V)>`
///     cost: "No exchange.";              the cost that is saved
/// }
/// ```
macro_rules! exclusive {
    (
        impl[$($generics:tt)*] $structure:ty;
        value: $value:ty;
        push_mut: |$into:ident, $pushed:ident| $push:expr;
        $(returns: $returns:ty;)?
        pop_mut: |$from:ident| $pop:expr;
        peek_mut: |$at:ident| $peek:expr;
        cost: $cost:literal;
    ) => {
        impl<$($generics)*> $structure {
            /// Pushes `value` by the only owner.
            #[doc = concat!(" ", $cost)]
            ///
            #[doc = exclusive!(@errors $($returns)?)]
            pub fn push_mut(&mut self, $pushed: $value) $(-> $returns)? {
                let $into = self;
                $push
            }

            /// Takes the value that [`pop`](Self::pop) would take, by the only owner.
            #[doc = concat!(" ", $cost)]
            pub fn pop_mut(&mut self) -> Option<$value> {
                let $from = self;
                $pop
            }

            /// Returns the value that [`pop_mut`](Self::pop_mut) would take, and leaves it there.
            pub fn peek_mut(&mut self) -> Option<&mut $value> {
                let $at = self;
                $peek
            }

            /// Takes the value that [`pop_mut`](Self::pop_mut) would take, if `predicate` is true
            /// of it.
            pub fn pop_if_mut(
                &mut self,
                predicate: impl FnOnce(&mut $value) -> bool,
            ) -> Option<$value> {
                if predicate(self.peek_mut()?) { self.pop_mut() } else { None }
            }
        }
    };

    (
        impl[$($generics:tt)*] $structure:ty;
        entry: $key:ty, $value:ty;
        key: $peeked:ty;
        push_mut: |$into:ident, $pushed_key:ident, $pushed:ident| $push:expr;
        pop_mut: |$from:ident| $pop:expr;
        peek_mut: |$at:ident| $peek:expr;
        cost: $cost:literal;
    ) => {
        impl<$($generics)*> $structure {
            /// Pushes an entry by the only owner.
            #[doc = concat!(" ", $cost)]
            pub fn push_mut(&mut self, $pushed_key: $key, $pushed: $value) {
                let $into = self;
                $push
            }

            /// Takes an entry with the smallest key, by the only owner.
            #[doc = concat!(" ", $cost)]
            pub fn pop_min_mut(&mut self) -> Option<($key, $value)> {
                let $from = self;
                $pop
            }

            /// Returns the entry that [`pop_min_mut`](Self::pop_min_mut) would take, and leaves it
            /// there.
            pub fn peek_min_mut(&mut self) -> Option<($peeked, &mut $value)> {
                let $at = self;
                $peek
            }

            /// Takes the entry that [`pop_min_mut`](Self::pop_min_mut) would take, if `predicate`
            /// is true of it.
            pub fn pop_min_if_mut(
                &mut self,
                predicate: impl FnOnce($peeked, &mut $value) -> bool,
            ) -> Option<($key, $value)> {
                let (key, value) = self.peek_min_mut()?;
                if predicate(key, value) { self.pop_min_mut() } else { None }
            }
        }
    };

    (@errors) => {
        ""
    };
    (@errors $returns:ty) => {
        "# Errors\n\n[`Full`] with the value, if there were as many as the capacity."
    };
}
