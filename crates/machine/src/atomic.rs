//! Atomics with the names and meanings of [`core::sync::atomic`].
//!
//! On the real machine they *are* the core types. Under loom they are types of the same interface,
//! and every operation is a branch of the exploration. `new` stays `const` there, which loom's own
//! atomics cannot offer, so `const INIT` and `static` locks keep their shape.
//!
//! A structure that is built while threads run, such as a queue node on a waiter's stack, should
//! build its atomics with [`Fresh::fresh`]. On the real machine that is `new`. Under loom the
//! creation becomes an event of the model: a thread that reaches the atomic without synchronizing
//! with its creator is reported. An atomic made by `new` is checked too, but less exactly: see the
//! chapter [`checking`](crate::checking).
//!
//! On a simulated machine they wrap the core types, and the memory system charges each access.
//!
//! [`AtomicU64`] is missing on a real machine with a processor that has no atomics of that width
//! (`thumbv7em`, `riscv32imac`).

#[cfg(any(stanchion_loom, stanchion_simulated, target_has_atomic = "64"))]
pub use crate::backend::atomic::AtomicU64;
pub use crate::backend::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, fence};
pub use core::sync::atomic::Ordering;

/// Keeps the compiler from moving accesses across it. It orders a thread with what interrupts it,
/// such as a handler of signals, and with no other thread.
///
/// On every machine it is a [`compiler_fence`](core::sync::atomic::compiler_fence), which costs no
/// instruction. C++ calls it `atomic_signal_fence`.
#[inline]
pub fn signal_fence() {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// An atomic or a [cell](crate::cell) that is made while the program runs.
///
/// On the real machine and the simulated one, `fresh` is `new`. Under loom the creation is an event
/// of the model, so `fresh` panics outside of a model.
///
/// ```
/// use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
/// use stanchion_machine::cell::UnsafeCell;
///
/// struct Node {
///     waits: AtomicU32,
///     value: UnsafeCell<&'static str>,
/// }
///
/// let node = Node { waits: AtomicU32::fresh(1), value: UnsafeCell::fresh("here") };
/// assert_eq!(node.waits.load(Relaxed), 1);
/// assert_eq!(node.value.into_inner(), "here");
/// ```
pub trait Fresh {
    /// The plain type of its value.
    type Value;

    /// Makes the object now. The chapter [`checking`](crate::checking) says where to use this
    /// instead of `new`.
    #[cfg_attr(stanchion_loom, track_caller)]
    fn fresh(value: Self::Value) -> Self;
}

/// An atomic that a waiter can watch; see [`wait_until`](crate::wait::wait_until).
///
/// Sealed: only the atomics of this module implement it, because a simulated machine must know them
/// all.
pub trait Word: sealed::Sealed {
    /// The type of the word's value.
    type Value: Copy;

    /// Loads the value once. Panics for `Release` and `AcqRel`, as a load does.
    #[cfg_attr(stanchion_loom, track_caller)]
    fn look(&self, order: Ordering) -> Self::Value;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($($atomic:ident => $value:ty),+) => {$(
        impl sealed::Sealed for $atomic {}

        impl Word for $atomic {
            type Value = $value;

            #[inline]
            fn look(&self, order: Ordering) -> $value {
                self.load(order)
            }
        }
    )+};
}

word!(AtomicBool => bool, AtomicU8 => u8, AtomicU32 => u32, AtomicUsize => usize);
#[cfg(any(stanchion_loom, stanchion_simulated, target_has_atomic = "64"))]
word!(AtomicU64 => u64);

impl<T> sealed::Sealed for AtomicPtr<T> {}

impl<T> Word for AtomicPtr<T> {
    type Value = *mut T;

    #[inline]
    fn look(&self, order: Ordering) -> *mut T {
        self.load(order)
    }
}
