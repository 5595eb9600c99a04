//! The macros `thread_local!` and `global!`: statics that every machine can keep apart, one set for
//! each execution.

/// Declares a thread-local static: `std::thread_local!` on the real machine. Under loom and
/// simulated there is one value for each thread and execution.
///
/// ```
/// stanchion_machine::thread_local! {
///     /// How often this thread has asked.
///     static ASKED: core::cell::Cell<u32> = core::cell::Cell::new(0);
/// }
/// ASKED.with(|asked| asked.set(asked.get() + 1));
/// assert_eq!(ASKED.with(core::cell::Cell::get), 1);
/// ```
#[macro_export]
macro_rules! thread_local {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;)+) => {
        $( $crate::__thread_local! { $(#[$attr])* $vis static $name: $type = $init; } )+
    };
}

/// Declares a static that all threads share: an ordinary `static` on the real machine. Under loom
/// and simulated there is a new one for every execution.
///
/// Read it through `&*NAME`, which works on every machine.
///
/// ```
/// use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed};
///
/// stanchion_machine::global! {
///     /// Tickets handed out by this process.
///     static TICKETS: AtomicU32 = AtomicU32::new(0);
/// }
/// assert_eq!(TICKETS.fetch_add(1, Relaxed), 0);
/// ```
#[macro_export]
macro_rules! global {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;)+) => {
        $( $crate::__global! { $(#[$attr])* $vis static $name: $type = $init; } )+
    };
}
