//! `membarrier`, or fences where there is none.
//!
//! | mode | `light` | `heavy` | next |
//! | --- | --- | --- | --- |
//! | undecided | fence; counted; number [`LIGHTS`] registers | registers | registered or plain |
//! | registered | nothing | membarrier | revoked, if the kernel refuses the barrier |
//! | revoked | fence | sleeps for [`GRACE`], then fences | plain, after such a sleep |
//! | plain | fence | fence | |
//!
//! # Invariants
//!
//! 1. The first decision stands: `registered` and `plain` are stored only in place of `undecided`,
//!    `revoked` only in place of `registered`, and `plain` replaces `revoked` for good.
//! 2. `registered` is stored after the process has registered with the kernel.
//! 3. No `heavy` returns with a fence alone before `plain` stands. A thread stores `plain` only
//!    if no `light` has been free before, or after it has slept for the whole period of grace.
//!
//! # Undecided to registered: from fences on both sides to a fence on one
//!
//! A `light` fences until it has seen `registered`. A fence is right with each kind of `heavy`,
//! because the kernel's barrier includes a fence of its caller. So a thread that sees the change
//! late does no harm. A `light` that has seen `registered` leaves the barrier to `heavy`, and
//! a `heavy` that does not use the kernel's would be wrong with it. There is none (Invariant 3):
//! nothing went to sleep with a fence alone in the undecided mode, because `heavy` decides first.
//! It registers although another thread may be at that as well. The kernel then lets every
//! processor pass through its scheduler before either registration returns. So each later
//! barrier reaches all threads of the process that run.
//!
//! # Revoked: what a thread may still be doing that has seen `registered`
//!
//! A system call filter that is installed after the first barrier can refuse the next one. From
//! then on every `light` must fence, but a thread may have loaded the old mode just before, and be
//! between its store and its load. Only that store matters: once it is visible, the thread that is
//! in `heavy` sees it, and what the other thread loads does not matter.
//!
//! - If the thread runs, its store precedes the load of the mode in its program. It sits in the
//!   processor's store buffer at worst, and leaves it within microseconds.
//! - If the thread has lost its processor, a switch of the kernel contains a full barrier. If a
//!   hypervisor took the whole processor away, the store buffer drains all the same, and
//!   instructions that were not retired begin again and load the new mode.
//!
//! So after a period of grace that is longer by orders of magnitude every such store is visible.
//! **Assumption:** a store becomes visible to all processors within [`GRACE`] of its
//! retirement. The architectures promise a finite time and name no bound. Morrison and Afek,
//! "Temporally bounding TSO for fence-free asymmetric synchronization", ASPLOS 2015, build on the
//! same bound and argue for far smaller ones. It is assumed for this one moment in the life of
//! a process only, and only if a filter takes away what was granted.
//!
//! Each `heavy` that finds the refusal, or comes before the grace is over, waits for all of it. Why
//! not let sleepers wake up now and then and look again instead: that helps locks, because their
//! sleepers can be late. Hazard pointers free memory when `heavy` has returned, a thief enters a
//! queue, a pool counts its last worker out: none of them can look again later. Here all users are
//! right at once, and none of them has code for it.
//!
//! A child of `fork` inherits the registration with the mode. A process that is restored from
//! a checkpoint may have lost it: so a refused barrier is tried once more after another
//! registration. Between the two no barrier has succeeded, so none has been missed.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, compiler_fence, fence};
use core::time::Duration;

const UNDECIDED: u8 = 0;
const REGISTERED: u8 = 1;
const REVOKED: u8 = 2;
const PLAIN: u8 = 3;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// The number of undecided [`light`]s so far. All threads write it, until the mode is decided.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The number of undecided `light`s of which the last one registers. They cost half a
/// millisecond in one thread, several where threads compete for the count. A registration beside
/// other threads costs 7 to 19 ms. The example `costs` prints both.
const LIGHTS: u32 = 1 << 17;

/// Longer, by orders of magnitude, than a store takes to become visible.
const GRACE: Duration = Duration::from_millis(20);

#[inline]
pub(crate) fn light() {
    // The caller's store comes before the load of the mode also for the compiler, see "Revoked".
    compiler_fence(Ordering::SeqCst);
    // Relaxed: a stale `undecided` fences, and a stale `registered` is what the grace is for.
    if MODE.load(Ordering::Relaxed) == REGISTERED {
        compiler_fence(Ordering::SeqCst);
    } else {
        light_with_fence();
    }
}

#[cold]
#[inline(never)]
fn light_with_fence() {
    // SeqCst: pairs with the fence of `heavy`, its own or the kernel's.
    fence(Ordering::SeqCst);
    // Relaxed, both: a hint, and a number. The caller's order is the fence above.
    if MODE.load(Ordering::Relaxed) == UNDECIDED
        && COUNT.fetch_add(1, Ordering::Relaxed) == LIGHTS - 1
    {
        decide();
    }
}

#[inline(never)]
pub(crate) fn heavy() {
    // Acquire: pairs with the Release of `decide` and `settle`: the registration, or the grace, is
    // before the barrier below.
    let mut mode = MODE.load(Ordering::Acquire);
    if mode == UNDECIDED {
        mode = decide();
    }
    if mode == REGISTERED {
        if membarrier::everywhere() {
            return;
        }
        revoke();
        mode = REVOKED;
    }
    if mode == REVOKED {
        settle();
    }
    // SeqCst: pairs with the fence of `light`, and with that of another `heavy`.
    fence(Ordering::SeqCst);
}

#[inline]
pub(crate) fn light_while_free() {
    compiler_fence(Ordering::SeqCst);
}

pub(crate) fn is_free() -> bool {
    // Relaxed: a hint.
    MODE.load(Ordering::Relaxed) == REGISTERED
}

pub(crate) fn never_use_membarrier() {
    match first_decision(PLAIN) {
        REGISTERED => {
            revoke();
            settle();
        }
        // Another thread has revoked it, and waits.
        REVOKED => settle(),
        _ => (),
    }
}

/// Registers if the kernel allows it, and returns the mode that stands.
#[cold]
fn decide() -> u8 {
    first_decision(if membarrier::register() { REGISTERED } else { PLAIN })
}

/// Decides for `mode` unless another mode stands, and returns the one that does.
fn first_decision(mode: u8) -> u8 {
    // Invariant 1. Release: the registration comes before it (pairs with the Acquire of `heavy`).
    // Acquire on failure: as in `heavy`.
    match MODE.compare_exchange(UNDECIDED, mode, Ordering::Release, Ordering::Acquire) {
        Ok(_) => mode,
        Err(standing) => standing,
    }
}

/// Makes every `light` fence that loads the mode from now on.
#[cold]
fn revoke() {
    // Relaxed: the fence orders it. If the exchange fails, another thread has revoked it.
    let _ = MODE.compare_exchange(REGISTERED, REVOKED, Ordering::Relaxed, Ordering::Relaxed);
    // SeqCst: the mode is visible before the grace begins.
    fence(Ordering::SeqCst);
}

/// Waits for the stores of the `light`s that have not seen the revocation.
#[cold]
fn settle() {
    membarrier::sleep(GRACE);
    // Release: pairs with the Acquire of a `heavy` that finds it, and does without a sleep.
    MODE.store(PLAIN, Ordering::Release);
}

#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
mod membarrier {
    use core::ptr;
    use core::time::Duration;
    use std::time::Instant;

    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn call(command: libc::c_int) -> libc::c_long {
        // SAFETY: the call takes numbers only.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }

    pub(super) fn register() -> bool {
        call(REGISTER_PRIVATE_EXPEDITED) == 0
    }

    /// Puts a barrier into every running thread of the process; returns whether the kernel did.
    pub(super) fn everywhere() -> bool {
        call(PRIVATE_EXPEDITED) == 0 || (register() && call(PRIVATE_EXPEDITED) == 0)
    }

    /// Sleeps for at least so long, which is less than a second. Allocates nothing. If the kernel
    /// refuses to put the thread to sleep, asks until the time is over.
    pub(super) fn sleep(period: Duration) {
        let start = Instant::now();
        loop {
            let left = period.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            // `as`: less than 10^9 fits every width that the field has.
            let left = libc::timespec { tv_sec: 0, tv_nsec: left.subsec_nanos() as _ };
            // A signal, or a filter, may end it early.
            // SAFETY: the structure is live, and no remainder is asked for.
            unsafe { libc::nanosleep(&raw const left, ptr::null_mut()) };
        }
    }
}

/// Systems without the call: the process is never registered, so nothing can be revoked.
#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn everywhere() -> bool {
        false
    }

    pub(super) fn sleep(_period: core::time::Duration) {}
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;
    use std::sync::Barrier;

    #[test]
    fn one_of_the_two_sees_the_other() {
        const ROUNDS: u32 = 2_000;
        static X: AtomicU32 = AtomicU32::new(0);
        static Y: AtomicU32 = AtomicU32::new(0);
        let start = Barrier::new(2);
        for round in 1..=ROUNDS {
            let (x, y) = std::thread::scope(|scope| {
                let often = scope.spawn(|| {
                    start.wait();
                    X.store(round, Ordering::Relaxed);
                    light();
                    Y.load(Ordering::Relaxed)
                });
                start.wait();
                Y.store(round, Ordering::Relaxed);
                heavy();
                (X.load(Ordering::Relaxed), often.join().unwrap())
            });
            assert!(x == round || y == round, "round {round}: both missed the other");
        }
    }

    #[test]
    fn a_decision_stands() {
        heavy();
        let free = is_free();
        light();
        heavy();
        assert_eq!(is_free(), free);
        if cfg!(not(target_os = "linux")) {
            assert!(!free);
        }
    }
}
