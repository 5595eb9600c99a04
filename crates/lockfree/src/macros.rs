//! What every structure can do because it can put one item in and take one out.

/// Gives a structure `drain`, `into_iter`, `Extend`, `FromIterator`, `Default`, `Debug` and `UnwindSafe`.
///
/// ```text
/// conveniences! {
///     impl[T, M: Memory] TreiberStack<T, M>;
///     item: T;                                        what comes out
///     take: |stack| stack.pop();                      one out, or None
///     put: |stack, value| stack.push(value);          one in; left out for a bounded structure: no Extend, no FromIterator
///     new: TreiberStack::with_memory(M::default());   an empty one; left out where there is none without arguments: no Default, no FromIterator
///     debug: |stack| empty = stack.is_empty();        what Debug shows, without blocking; may be left out
/// }
/// ```
///
/// The structure's own `Send`, `Sync` and `Drop` stay with it.
macro_rules! conveniences {
    (
        impl[$($generics:tt)*] $structure:ident<$($parameter:ident),+>;
        item: $item:ty;
        take: |$from:ident| $take:expr;
        $(put: |$into:ident, $value:ident| $put:expr;)?
        $(new: $new:expr;)?
        $(debug: |$debugged:ident| $($shown:ident = $with:expr),+;)?
    ) => {
        impl<$($generics)*> $crate::iter::Take for $structure<$($parameter),+> {
            type Item = $item;

            #[inline]
            fn take(&self) -> Option<$item> {
                let $from = self;
                $take
            }
        }

        impl<$($generics)*> $structure<$($parameter),+> {
            /// Takes out what is there, one at a time, until a look finds nothing. Other threads may go on meanwhile: what they put in comes out too.
            ///
            /// See [`Drain`](crate::iter::Drain).
            pub fn drain(&self) -> $crate::iter::Drain<'_, Self> {
                $crate::iter::Drain::of(self)
            }
        }

        // An operation that panics, in a comparison or a closure of the caller's, leaves every item in its place or takes it out
        // whole. Items need not be `RefUnwindSafe`: the structure gives out no reference that outlives a call.
        impl<$($generics)*> ::core::panic::UnwindSafe for $structure<$($parameter),+> {}
        impl<$($generics)*> ::core::panic::RefUnwindSafe for $structure<$($parameter),+> {}

        impl<$($generics)*> IntoIterator for $structure<$($parameter),+> {
            type Item = $item;
            type IntoIter = $crate::iter::IntoIter<Self>;

            fn into_iter(self) -> Self::IntoIter {
                $crate::iter::IntoIter::of(self)
            }
        }

        impl<$($generics)*> ::core::fmt::Debug for $structure<$($parameter),+> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $(let $debugged = self;)?
                f.debug_struct(stringify!($structure))
                    $($(.field(stringify!($shown), &$with))+)?
                    .finish_non_exhaustive()
            }
        }

        conveniences!(@put [$($generics)*] [$structure<$($parameter),+>] $item $(, |$into, $value| $put)?);
        conveniences!(@new [$($generics)*] [$structure<$($parameter),+>] $item $(, $new)?);
        conveniences!(@both [$($generics)*] [$structure<$($parameter),+>] $item $(, [$put])? $(, [$new])?);
    };

    (@put [$($generics:tt)*] [$structure:ty] $item:ty) => {};
    (@put [$($generics:tt)*] [$structure:ty] $item:ty, |$into:ident, $value:ident| $put:expr) => {
        impl<$($generics)*> Extend<$item> for $structure {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                let $into = &*self;
                items.into_iter().for_each(|$value| $put);
            }
        }

        /// Others may use the structure meanwhile.
        impl<$($generics)*> Extend<$item> for &$structure {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                let $into: &$structure = self;
                items.into_iter().for_each(|$value| $put);
            }
        }
    };

    (@new [$($generics:tt)*] [$structure:ty] $item:ty) => {};
    (@new [$($generics:tt)*] [$structure:ty] $item:ty, $new:expr) => {
        impl<$($generics)*> Default for $structure {
            fn default() -> Self {
                $new
            }
        }
    };

    (@both [$($generics:tt)*] [$structure:ty] $item:ty, [$put:expr], [$new:expr]) => {
        impl<$($generics)*> FromIterator<$item> for $structure {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                let mut structure: Self = $new;
                structure.extend(items);
                structure
            }
        }
    };
    (@both $($without:tt)*) => {};
}
