//! The values that members exchange.

/// A value that members can exchange as its bytes: also with another process, or another computer
/// of the same kind.
///
/// Numbers, `bool`, `char`, `()` and arrays of these are such values. [`data!`](crate::data!)
/// implements the trait for structs and enums of a program, without `unsafe`, if they can be.
///
/// # Safety
///
/// All bytes of the type are initialized: it has no padding. It holds no pointer, and no other
/// value that has a meaning only in the process that made it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be handed from member to member as its bytes",
    note = "numbers, `bool`, `char` and arrays of these can be; `stanchion_gang::data!` makes structs of these so"
)]
pub unsafe trait Data: Copy + Send + Sync + 'static {}

macro_rules! numbers {
    ($($type:ty),+) => {$(
        // SAFETY: a number or a truth value has no padding and no pointer.
        unsafe impl Data for $type {}
    )+};
}

numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool, char, ());

// SAFETY: an array has no padding but that of its elements, which have none.
unsafe impl<T: Data, const N: usize> Data for [T; N] {}
