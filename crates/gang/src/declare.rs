//! [`data!`](crate::data!), which implements [`Data`] for structs and enums.
//!
//! Why not a derive: it would be a crate of its own, and parse source that the compiler knows. Why
//! not an implementation for every type that is `Copy`: a reference is `Copy`, a pointer is, and
//! padding is not initialized. Why not the bound of another crate, as `bytemuck::NoUninit`: it
//! allows pointers, and its version would be part of this crate's interface.
//!
//! # Invariants
//!
//! 1. The fields that are named are all fields, each once: they are a pattern without `..`.
//! 2. Each of them is [`Data`], by its own type, which the compiler infers.
//! 3. Their sizes add up to that of the struct, so there is no padding between them.
//! 4. The type is no union: a union's field is not bound by a pattern without `unsafe`. And it is
//!    of the crate that calls the macro, for the trait is not.
//! 5. An enum that can be cast to a number has no fields, so it is a number. If it has at most one
//!    byte, it has no padding. A larger one may be aligned beyond its number, which nothing tells.

use crate::data::Data;

/// Implements [`Data`] for structs and enums of a program without `unsafe`, so that members of a
/// gang can exchange them.
///
/// A struct names all its fields, in any order. Each field must be [`Data`] itself. An enum has no
/// fields and one byte. The compiler refuses padding, pointers and references, and a missing field.
/// It also refuses structs that are generic or packed. The macro costs nothing when the program
/// runs.
///
/// ```
/// use stanchion_gang::{GangExecutor, Member, data};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Kind {
///     Light,
///     Heavy,
/// }
/// data!(enum Kind);
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Particle {
///     place: [f64; 3],
///     mass: f32,
///     kind: Kind,
///     spare: [u8; 3],
/// }
/// data!(struct Particle { place, mass, kind, spare });
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Range(u32, u32);
/// data!(struct Range(from, to));
///
/// let gang = GangExecutor::new(2)?.spawn(2, |member: &mut Member| {
///     let place = [member.index() as f64; 3];
///     let mine = Particle { place, mass: 1.0, kind: Kind::Heavy, spare: [0; 3] };
///     let heaviest = member.all_reduce(mine, |a, b| if a.mass < b.mass { b } else { a })?;
///     member.broadcast(0, Range(0, heaviest.place[0] as u32))
/// })?;
/// assert_eq!(gang.join()?, [Range(0, 0); 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A struct with padding is refused. Fields that fill it, as `spare` above, or a wider type help:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy)]
/// struct Padded { tall: u64, small: u8 }
/// stanchion_gang::data!(struct Padded { tall, small });
/// ```
///
/// So is one that is aligned beyond its fields:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy)]
/// #[repr(align(16))]
/// struct Aligned(u64);
/// stanchion_gang::data!(struct Aligned(number));
/// ```
///
/// A pointer, and a reference, although it lives for ever:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Pointer { to: *const u8 }
/// stanchion_gang::data!(struct Pointer { to });
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Reference { to: &'static u64 }
/// stanchion_gang::data!(struct Reference { to });
/// ```
///
/// A function, which is a pointer too:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Function { call: fn() }
/// stanchion_gang::data!(struct Function { call });
/// ```
///
/// A field of a struct that is not [`Data`], because it has padding itself:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Padded { tall: u64, small: u8 }
/// #[derive(Clone, Copy)]
/// struct Outer { inner: Padded }
/// stanchion_gang::data!(struct Outer { inner });
/// ```
///
/// A field that is not named:
///
/// ```compile_fail
/// #[derive(Clone, Copy)]
/// struct Hidden { shown: u32, hidden: u32 }
/// stanchion_gang::data!(struct Hidden { shown });
/// ```
///
/// ```compile_fail,E0023
/// #[derive(Clone, Copy)]
/// struct Hidden(u32, u32);
/// stanchion_gang::data!(struct Hidden(shown));
/// ```
///
/// A field that is named twice in place of another:
///
/// ```compile_fail,E0416
/// #[derive(Clone, Copy)]
/// struct Hidden { shown: u32, hidden: *const u8 }
/// stanchion_gang::data!(struct Hidden { shown, shown });
/// ```
///
/// A union: some of its bytes may not be initialized:
///
/// ```compile_fail,E0133
/// #[derive(Clone, Copy)]
/// union Either { number: u32, nothing: () }
/// stanchion_gang::data!(struct Either { number });
/// ```
///
/// An enum with fields in its variants:
///
/// ```compile_fail,E0605
/// #[derive(Clone, Copy)]
/// enum Shape { Circle(u32), Nothing }
/// stanchion_gang::data!(enum Shape);
/// ```
///
/// An enum of more than one byte, of which some may be padding:
///
/// ```compile_fail,E0080
/// #[derive(Clone, Copy)]
/// #[repr(align(4))]
/// enum Aligned { One, Two }
/// stanchion_gang::data!(enum Aligned);
/// ```
///
/// A struct that is no enum, and a type that is not `Copy`:
///
/// ```compile_fail,E0605
/// #[derive(Clone, Copy)]
/// struct Pointer(*const u8);
/// stanchion_gang::data!(enum Pointer);
/// ```
///
/// ```compile_fail,E0277
/// struct Moved { number: u32 }
/// stanchion_gang::data!(struct Moved { number });
/// ```
///
/// A type of another crate, here a pointer to a function, which could be cast to a number:
///
/// ```compile_fail,E0117
/// type Function = fn();
/// stanchion_gang::data!(enum Function);
/// ```
#[macro_export]
macro_rules! data {
    (struct $type:ident { $($field:ident),* $(,)? }) => {
        $crate::data!(@struct $type ($type { $($field),* }) $($field)*);
    };
    (struct $type:ident ( $($field:ident),* $(,)? )) => {
        $crate::data!(@struct $type ($type ( $($field),* )) $($field)*);
    };
    (enum $type:ident) => {
        const _: fn($type) -> u128 = |value| value as u128;
        const _: () = ::core::assert!(
            ::core::mem::size_of::<$type>() <= 1,
            "the enum has more than one byte, of which some may not be initialized"
        );
        // SAFETY: a number without padding: see the head of `declare.rs` of `stanchion-gang`.
        unsafe impl $crate::Data for $type {}
    };
    (@struct $type:ident $pattern:tt $($field:ident)*) => {
        const _: () = ::core::assert!(
            ::core::mem::size_of::<$type>() == 0 $(+ {
                #[allow(unused_variables, unused_parens)]
                let field: fn(&$type) -> &_ = |value| {
                    let $pattern = value;
                    $field
                };
                $crate::size_of_data(field)
            })*,
            "the struct has padding, which is not initialized: fill it with fields"
        );
        // SAFETY: all its fields are `Data`, and it has no padding: see the head of `declare.rs` of
        // `stanchion-gang`.
        unsafe impl $crate::Data for $type {}
    };
}

/// Returns the size of a field, which must be [`Data`]. For [`data!`](crate::data!) only.
#[doc(hidden)]
#[must_use]
pub const fn size_of_data<S, T: Data>(_field: fn(&S) -> &T) -> usize {
    size_of::<T>()
}
