//! `membarrier`, or fences where there is none: the [modes](crate::modes) of the process.
//!
//! A child of `fork` inherits the registration with the mode. A process that is restored from
//! a checkpoint may have lost it: so a refused barrier is tried once more after another
//! registration. Between the two no barrier has succeeded, so none has been missed.
//!
//! A child that is forked while another thread changes between barriers and fences does not have
//! that thread. The child's next `heavy` ends the change.

use core::sync::atomic::{Ordering, compiler_fence};

use crate::modes::Modes;

use kernel::Membarrier;

static MODES: Modes = Modes::new();

#[inline]
pub(crate) fn light() {
    MODES.light(&Membarrier);
}

#[inline(never)]
pub(crate) fn heavy() {
    MODES.heavy(&Membarrier);
}

#[inline]
pub(crate) fn light_while_free() {
    compiler_fence(Ordering::SeqCst);
}

pub(crate) fn wait_until_visible() {
    MODES.wait_until_visible(&Membarrier);
}

pub(crate) fn reconsider() {
    MODES.reconsider(&Membarrier);
}

pub(crate) fn period() -> Option<u32> {
    MODES.period()
}

pub(crate) fn never_use_membarrier() {
    MODES.refuse(&Membarrier);
}

#[cfg(all(target_os = "linux", feature = "std", not(miri)))]
mod kernel {
    use core::ptr;
    use core::sync::atomic::{Ordering, fence};
    use core::time::Duration;
    use std::time::Instant;

    use crate::sharing::{Answer, Kernel};

    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    /// Longer, by orders of magnitude, than a store takes to become visible.
    const GRACE: Duration = Duration::from_millis(20);

    /// The kernel's barrier in all running threads of the process.
    pub(super) struct Membarrier;

    fn call(command: libc::c_int) -> bool {
        // SAFETY: the call takes numbers only.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    impl Kernel for Membarrier {
        fn register(&self) -> bool {
            call(REGISTER_PRIVATE_EXPEDITED)
        }

        fn barrier(&self) -> Answer {
            let began = pace::now();
            // SeqCst, both: the caller's own part of the barrier. The kernel has such fences too,
            // but not where the process has one thread, and the compiler knows nothing of them.
            fence(Ordering::SeqCst);
            let made = call(PRIVATE_EXPEDITED) || (self.register() && call(PRIVATE_EXPEDITED));
            fence(Ordering::SeqCst);
            match made {
                false => Answer::Refused,
                true if pace::counts(began) => Answer::TooMany,
                true => Answer::Made,
            }
        }

        fn leaves(&self) {
            pace::leaves();
        }

        fn is_worth_a_try(&self) -> bool {
            pace::is_over()
        }

        /// Allocates nothing. If the kernel refuses to put the thread to sleep, asks until the time
        /// is over.
        fn sleep(&self) {
            let start = Instant::now();
            loop {
                let left = GRACE.saturating_sub(start.elapsed());
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

    /// The [`Saturation`] of the process.
    #[cfg(target_has_atomic = "64")]
    mod pace {
        use crate::saturation::Saturation;

        static SATURATION: Saturation = Saturation::new();

        /// Returns the kernel's monotonic clock in nanoseconds: a call without a switch to the
        /// kernel, which needs no preparation.
        pub(super) fn now() -> u64 {
            let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the structure is live.
            unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
            // `as`, both: the clock has begun after 1970, and its parts are not negative.
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        }

        /// Counts a barrier that began then. Returns whether barriers are too many.
        pub(super) fn counts(began: u64) -> bool {
            SATURATION.counts(began, now())
        }

        /// Begins a period of fences on both sides.
        pub(super) fn leaves() {
            SATURATION.leaves(now());
        }

        /// Returns whether barriers are worth another try.
        pub(super) fn is_over() -> bool {
            SATURATION.is_over(now())
        }
    }

    /// Processors that cannot count so far: barriers are never too many.
    #[cfg(not(target_has_atomic = "64"))]
    mod pace {
        pub(super) fn now() {}

        pub(super) fn counts(_began: ()) -> bool {
            false
        }

        pub(super) fn leaves() {}

        pub(super) fn is_over() -> bool {
            false
        }
    }
}

/// Systems without the call: the process is never registered, so nothing can be revoked.
#[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
mod kernel {
    use crate::sharing::{Answer, Kernel};

    /// No barrier.
    pub(super) struct Membarrier;

    impl Kernel for Membarrier {
        fn register(&self) -> bool {
            false
        }

        fn barrier(&self) -> Answer {
            Answer::Refused
        }

        fn leaves(&self) {}

        fn is_worth_a_try(&self) -> bool {
            false
        }

        fn sleep(&self) {}
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::sharing::{Answer, Kernel};
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

    /// The kernel, which says much more often than in earnest that barriers are too many.
    struct Fickle {
        /// The number of its barriers.
        barriers: AtomicU32,
        /// The number of times that it was asked whether barriers are worth a try.
        looks: AtomicU32,
    }

    impl Kernel for Fickle {
        fn register(&self) -> bool {
            Membarrier.register()
        }

        fn barrier(&self) -> Answer {
            match Membarrier.barrier() {
                Answer::Refused => Answer::Refused,
                _ if self.barriers.fetch_add(1, Ordering::Relaxed) % 3 == 2 => Answer::TooMany,
                _ => Answer::Made,
            }
        }

        fn leaves(&self) {}

        fn is_worth_a_try(&self) -> bool {
            self.looks.fetch_add(1, Ordering::Relaxed) % 5 == 4
        }

        fn sleep(&self) {
            Membarrier.sleep();
        }
    }

    /// Waits until both threads have come so far. It spins, so that they go on at the same moment.
    fn meet(arrivals: &AtomicU32, all: u32) {
        arrivals.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u32;
        while arrivals.load(Ordering::Acquire) < all {
            looks += 1;
            if looks.is_multiple_of(1_000) {
                std::thread::yield_now();
            }
        }
    }

    /// Takes some nanoseconds: the two meet at all distances.
    fn delay(turns: u32) {
        for turn in 0..turns {
            core::hint::black_box(turn);
        }
    }

    /// Without any barrier a few rounds in a million fail, so many runs find what one may not. The
    /// models of the modes are the proof.
    #[test]
    fn one_of_the_two_sees_the_other_while_the_mode_changes() {
        const ROUNDS: u32 = 100_000;
        let fickle = Fickle { barriers: AtomicU32::new(0), looks: AtomicU32::new(0) };
        let modes = Modes::new();
        let words = [const { AtomicU32::new(0) }; 2].map(crossbeam_utils::CachePadded::new);
        let arrivals = AtomicU32::new(0);
        let seen = AtomicU32::new(0);
        let mut free = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    meet(&arrivals, 4 * round - 2);
                    delay(round % 61);
                    words[0].store(round, Ordering::Relaxed);
                    modes.light(&fickle);
                    seen.store(words[1].load(Ordering::Relaxed), Ordering::Relaxed);
                    meet(&arrivals, 4 * round);
                }
            });
            let mut missed = 0;
            for round in 1..=ROUNDS {
                meet(&arrivals, 4 * round - 2);
                delay(round % 67);
                words[1].store(round, Ordering::Relaxed);
                modes.heavy(&fickle);
                let own = words[0].load(Ordering::Relaxed);
                meet(&arrivals, 4 * round);
                missed += u32::from(own != round && seen.load(Ordering::Relaxed) != round);
                free += u32::from(modes.period().is_some());
            }
            assert_eq!(missed, 0, "rounds in which each missed the other");
        });
        let registered = Membarrier.register();
        assert_eq!(registered, free > 0, "barriers were there in {free} of {ROUNDS} rounds");
        assert!(!registered || free < ROUNDS, "the mode has never changed");
    }
}
