//! An asymmetric store-load barrier: one side pays for both. [`light`] is free or nearly so, and
//! [`heavy`] costs a system call.
//!
//! Two threads each write one word and then read the word of the other (Dekker's pattern). At least
//! one of them must see the other's write. With ordinary fences each thread pays for one. An unlock
//! runs a million times more often than a thread goes to sleep on the lock. So the rare side pays
//! for both: it makes the kernel put a barrier into every running thread of the process.
//!
//! ```text
//! often                  seldom
//! -----                  ------
//! write X                write Y
//! light()                heavy()
//! read Y                 read X        at least one of the reads sees the other's write
//! ```
//!
//! Two [`light`]s order nothing between them. `light` with [`heavy`], and `heavy` with `heavy`, do.
//!
//! | machine | `light` | `heavy` |
//! | --- | --- | --- |
//! | Linux 4.14 and later, registered | a barrier for the compiler | `membarrier` |
//! | the same, not registered yet | `fence(SeqCst)`, and a count | registers, then as above |
//! | the same, while barriers are too many | `fence(SeqCst)` | `fence(SeqCst)`, and the clock |
//! | elsewhere, or where the kernel refuses | `fence(SeqCst)` | `fence(SeqCst)` |
//! | loom | `fence(SeqCst)` | `fence(SeqCst)`: what it stands for |
//! | simulated, a server of today | nothing: it reorders nothing | charged as `membarrier` |
//! | simulated, a machine of the papers | charged as a fence | charged as a fence |
//!
//! `membarrier` (private expedited) takes 0.1 to 0.4 µs if no other thread of the process runs, and
//! 1 to 2 µs if one does. More running threads make it longer (see below).
//!
//! # When the process registers, and the one pause that remains
//!
//! The kernel wants the process to register before it uses `membarrier`. In a process with one
//! thread that takes a microsecond. In a process with several threads the kernel first lets every
//! processor pass through its scheduler: 7 to 19 ms, once, for the thread that registers. Other
//! threads do not wait for it. Linking this crate registers nothing. The process registers
//!
//! 1. in the first `heavy`: its thread is mostly about to sleep anyway;
//! 2. or in the 131,072nd `light`, so that a program in which no thread ever sleeps stops paying
//!    for fences. Why not earlier: such a program may end before, and then has not paid for a
//!    registration at all. By then its fences have cost half a millisecond in one thread, and
//!    several where threads compete for the count, so the pause is of the same order.
//!
//! So in a program with several threads one call takes those milliseconds. If that is too long at
//! that point, call [`warm_up`] (or [`heavy`]) at the start, best before other threads run.
//!
//! `cargo run --release -p stanchion-machine --example costs` prints these times for this machine.
//!
//! # Many processors, and many barriers
//!
//! `heavy` interrupts each processor that runs another thread of the process, one after another,
//! and since Linux 6.8 the kernel serves one call at a time. So it takes longer with each running
//! thread, and callers wait for each other. If the kernel makes barriers for the process more than
//! half of the time, ordinary fences are cheaper for all threads. So then both sides fence for 50
//! ms. The first `heavy` or [`reconsider`] after that tries barriers again. If they are too many
//! soon, both sides fence for twice as long, up to 10 s. A quarter of a millisecond of barriers
//! beyond half of the time begins such a time. The rule counts nothing in `light`, and needs no
//! number of processors.
//!
//! `cargo xtask costs` shows on a simulated machine what each operation costs with 1 to 64
//! processors, and `cargo xtask costs --symmetric-fences` what it costs if both sides always fence.
//! `stanchion machine` prints what a `heavy` takes here, beside one running thread, and how many a
//! millisecond are too many.
//!
//! Threads that want a barrier at the same time share one. A caller waits for a barrier that
//! another thread makes, if it begins after the call.
//!
//! Why not interrupt only the processor of one thread, for a thief that knows its victim: the one
//! command that can (`MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ` with `MEMBARRIER_CMD_FLAG_CPU`, Linux
//! 5.10) promises in membarrier(2) to restart restartable sequences, and no order of memory. The
//! kernel's source has had a barrier in it only since a later correction ("membarrier: Add an
//! actual barrier before rseq_preempt()", December 2020), and a program cannot ask for that.
//!
//! # System call filters
//!
//! | the filter | then |
//! | --- | --- |
//! | refuses `membarrier` from the start | both sides fence |
//! | refuses it later, with an error | both sides fence from then on; `heavy` first waits 20 ms |
//! | kills on `membarrier` | call [`never_use_membarrier`] before, or the process dies |
//! | answers 0 without doing it | nothing can notice that, and nothing here is right any more |
//!
//! A process that is killed has reached its first `heavy`, or its 131,072nd `light`.
//!
//! Source: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001; the kernel's side is
//! membarrier(2).
//!
//! [`warm_up`]: crate::warm_up()

use crate::backend;

/// Orders the caller's writes before its reads, towards [`heavy`]. For the side that runs often.
///
/// Costs a load of a word that seldom changes once the process has registered. Until then, where
/// `membarrier` is not to be had, and as long as barriers are too many, it costs a fence. One call
/// may register the process (see the [module](self)). It neither allocates nor opens a file.
///
/// ```
/// use stanchion_machine::{asymmetric, atomic::{AtomicU32, Ordering::Relaxed}};
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

/// Orders as [`light`] does, without checking whether that is free: for a caller that keeps the
/// answer itself.
///
/// It is a barrier for the compiler on the real machine, and `light` on the others.
///
/// The answer can change later: if barriers are too many, if a filter refuses them, or if the
/// program calls [`never_use_membarrier`]. So a caller says in a [`Reliance`] on which [`period`]
/// it relies, and each thread that calls [`heavy`] towards it looks there.
///
/// ```
/// use stanchion_machine::asymmetric;
/// asymmetric::heavy();
/// if asymmetric::period().is_some() {
///     // And the caller's `Reliance` says so.
///     asymmetric::light_while_free();
/// }
/// ```
///
/// [`Reliance`]: crate::reliance::Reliance
#[inline]
pub fn light_while_free() {
    backend::asymmetric::light_while_free();
}

/// Orders the caller's writes before its reads, towards [`light`] and `heavy` of all threads. For
/// the side that runs seldom.
///
/// Afterwards the caller sees what a thread wrote before its last `light`, or that thread sees
/// after its `light` what the caller wrote before.
///
/// Costs a system call, some microseconds. The first call registers the process. If the kernel
/// takes `membarrier` back, the call sleeps 20 ms once (see the [module](self)). It neither
/// allocates nor opens a file, and it never panics.
#[cold]
pub fn heavy() {
    backend::asymmetric::heavy();
}

/// Waits until all is visible that other threads wrote before a [`light_while_free`].
///
/// For a thread that has made those threads use [`light`] from now on. Costs what [`heavy`] does,
/// or 20 ms if the kernel makes no barriers.
///
/// ```
/// use stanchion_machine::{asymmetric, atomic::{AtomicU32, Ordering::Relaxed}};
/// static LIMIT: AtomicU32 = AtomicU32::new(8);
/// LIMIT.store(0, Relaxed); // From now on the other side calls `light`.
/// asymmetric::wait_until_visible();
/// ```
pub fn wait_until_visible() {
    backend::asymmetric::wait_until_visible();
}

/// Returns whether [`light`] is only a barrier for the compiler by now.
///
/// The question registers nothing: before the first [`heavy`] the answer is `false` on the real
/// machine.
///
/// ```
/// use stanchion_machine::asymmetric;
/// asymmetric::heavy();
/// if !asymmetric::is_free() {
///     // This system has no `membarrier`, or a filter refuses it.
/// }
/// ```
#[must_use]
pub fn is_free() -> bool {
    period().is_some()
}

/// Returns the number of the current period in which [`light`] is free, or `None` if it is not.
///
/// On the real machine a number does not come again within months. The look orders the caller's
/// later reads after it. As [`is_free`], the question registers nothing.
///
/// ```
/// use stanchion_machine::asymmetric;
/// assert_eq!(asymmetric::period().is_some(), asymmetric::is_free());
/// ```
#[must_use]
pub fn period() -> Option<u32> {
    backend::asymmetric::period()
}

/// Tries barriers again if the time of fences on both sides is over, as [`heavy`] does.
///
/// For a caller of [`light`] that seldom meets a `heavy`. Costs a load, and a look at the clock
/// while both sides fence.
///
/// ```
/// stanchion_machine::asymmetric::reconsider();
/// ```
pub fn reconsider() {
    backend::asymmetric::reconsider();
}

/// Makes both sides fence for good: the process does not call `membarrier` any more.
///
/// Programs call it before they install a system call filter that kills on `membarrier`. A filter
/// that returns an error needs no such call. It is a function and no environment variable because
/// the answer is needed inside `lock()`, where reading a variable could allocate.
///
/// Called before the first lock of the process is used, it costs nothing, and nothing ever calls
/// `membarrier`. Called after the process has registered, it sleeps 20 ms. A thread that is inside
/// [`heavy`], [`wait_until_visible`] or a registering [`light`] meanwhile may still be about to
/// make the call, so threads should not contend for locks then.
///
/// ```
/// use stanchion_machine::asymmetric;
/// asymmetric::never_use_membarrier();
/// asymmetric::heavy();
/// # #[cfg(not(any(stanchion_loom, stanchion_simulated)))]
/// assert!(!asymmetric::is_free());
/// ```
pub fn never_use_membarrier() {
    backend::asymmetric::never_use_membarrier();
}
