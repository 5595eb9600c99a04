//! `membarrier`, or fences where there is none.
//!
//! | mode | `light` | `heavy` | next |
//! | --- | --- | --- | --- |
//! | undecided | fence | decides | deciding, or the result |
//! | deciding | fence | decides as well: the call may be repeated | the result |
//! | registered | nothing | membarrier | |
//! | plain | fence | fence | |
//!
//! # Invariants
//!
//! 1. `registered` is stored after the process has registered with the kernel, and neither result changes any more: so a thread that finds
//!    `registered` may leave the barrier to `heavy`, because every `heavy` that returns from now on has used the kernel's.
//! 2. A thread that has not seen a result fences, which is right with either.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

const UNDECIDED: u8 = 0;
const DECIDING: u8 = 1;
const REGISTERED: u8 = 2;
const PLAIN: u8 = 3;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

#[inline]
pub(crate) fn light() {
    // Relaxed: a stale answer is Invariant 2.
    if MODE.load(Ordering::Relaxed) == REGISTERED {
        compiler_fence(Ordering::SeqCst);
    } else {
        light_undecided();
    }
}

#[cold]
#[inline(never)]
fn light_undecided() {
    fence(Ordering::SeqCst);
    // Relaxed: whoever wins decides; the result carries no data.
    let won =
        MODE.compare_exchange(UNDECIDED, DECIDING, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if won {
        decide();
    }
}

#[inline(never)]
pub(crate) fn heavy() {
    // Acquire: not needed for data; it keeps the barrier below after the answer that chose it.
    let mode = match MODE.load(Ordering::Acquire) {
        UNDECIDED | DECIDING => decide(),
        mode => mode,
    };
    if mode == REGISTERED { membarrier::everywhere() } else { fence(Ordering::SeqCst) }
}

pub(crate) fn is_free() -> bool {
    decided() == REGISTERED
}

fn decided() -> u8 {
    match MODE.load(Ordering::Acquire) {
        UNDECIDED | DECIDING => decide(),
        mode => mode,
    }
}

/// Registers if the kernel lets us; says which result stands.
fn decide() -> u8 {
    let result = if membarrier::register() { REGISTERED } else { PLAIN };
    let mut mode = MODE.load(Ordering::Relaxed);
    // Invariant 1: the first result stands.
    while mode < REGISTERED {
        // Release: the registration is before it, for who asks the kernel next.
        match MODE.compare_exchange(mode, result, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return result,
            Err(now) => mode = now,
        }
    }
    mode
}

#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
mod membarrier {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn call(command: libc::c_int) -> libc::c_long {
        // SAFETY: the call takes numbers only.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }

    pub(super) fn register() -> bool {
        call(REGISTER_PRIVATE_EXPEDITED) == 0
    }

    pub(super) fn everywhere() {
        if call(PRIVATE_EXPEDITED) == 0 {
            return;
        }
        // A child of fork may have to register anew. Nothing else can refuse what was granted before.
        assert!(
            register() && call(PRIVATE_EXPEDITED) == 0,
            "membarrier was granted to this process and is refused now: was a system call filter installed after its first lock?"
        );
    }
}

#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn everywhere() {
        unreachable!("nobody has registered");
    }
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
    fn the_answer_stands() {
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
