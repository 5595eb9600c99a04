//! A store-load barrier whose price is paid by one side: [`light`] is free or nearly so, [`heavy`] costs a system call.
//!
//! Two threads that each write one word and then read the other's (Dekker's pattern) must not both miss the other's write. With ordinary
//! fences each side pays for one. Where one side runs a million times more often than the other, as a release of a lock does beside
//! going to sleep on it, the rare side can pay for both: it makes the kernel put a barrier into every running thread of the process.
//!
//! ```text
//! often                  seldom
//! -----                  ------
//! write X                write Y
//! light()                heavy()
//! read Y                 read X        at least one of the reads sees the other's write
//! ```
//!
//! Two [`light`]s order nothing between them; `light` with [`heavy`], and `heavy` with `heavy`, do.
//!
//! | machine | `light` | `heavy` |
//! | --- | --- | --- |
//! | Linux 4.14 and later | a barrier for the compiler | `membarrier`, private expedited: 0.1 µs alone, 1 to 2 µs with another thread running |
//! | elsewhere, or where the call is filtered | `fence(SeqCst)` | `fence(SeqCst)` |
//! | loom | `fence(SeqCst)` | `fence(SeqCst)`: what it stands for |
//! | simulated | nothing: it reorders nothing | a fence |
//!
//! Which of the first two it is, is found out once, by the first call of either. In a process that has threads already that call takes as
//! long as the kernel needs to let every processor pass through its scheduler (7 to 19 ms), once; other threads do not wait for it.
//! `cargo run --release -p stanchion-machine --example costs` prints these three times for this machine.
//!
//! Source: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001; the kernel's side is membarrier(2).

use crate::backend;

/// The side that runs often. Costs a load of a word that never changes.
///
/// ```
/// use machine::{asymmetric, atomic::{AtomicU32, Ordering::Relaxed}};
/// # use stanchion_machine as machine;
/// static FREE: AtomicU32 = AtomicU32::new(0);
/// static SLEEPERS: AtomicU32 = AtomicU32::new(0);
/// FREE.store(1, Relaxed);
/// asymmetric::light();
/// if SLEEPERS.load(Relaxed) != 0 { /* wake one */ }
/// ```
#[inline]
pub fn light() {
    backend::asymmetric::light();
}

/// The side that runs seldom: afterwards, whatever a running thread did before its last [`light`] is seen, or that thread sees after it
/// what the caller did before.
#[cold]
pub fn heavy() {
    backend::asymmetric::heavy();
}

/// Whether [`light`] is only a barrier for the compiler here: the answer is found out if it is not known yet.
#[must_use]
pub fn is_free() -> bool {
    backend::asymmetric::is_free()
}
