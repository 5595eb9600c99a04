//! The two sides of an asymmetric fence, for a kernel that may make barriers: which side fences
//! when.
//!
//! | mode | `light` | `heavy` | next |
//! | --- | --- | --- | --- |
//! | undecided | fence; counted; number `LIGHTS` registers | registers | barriers or refused |
//! | barriers | nothing | barrier | leaving, if they are too many; revoked, if one is refused |
//! | leaving | fence | barrier | both, after the barrier; revoked, if it is refused |
//! | both | fence | fence, and a look at the mode | returning, if barriers are worth a try |
//! | returning | fence | barrier | barriers, after a fence |
//! | revoked | fence | sleeps for a period of grace, then fences | refused, after such a sleep |
//! | refused | fence | fence | |
//!
//! # Invariants
//!
//! 1. Each change goes along this table, by a compare-exchange. `refused` is the end. The word also
//!    counts the periods of barriers, so a mode that comes again is another value.
//! 2. `barriers` is stored after the process has registered with the kernel.
//! 3. A `light` that does not fence has loaded `barriers`.
//! 4. A `heavy` that returns with a fence alone has seen the same `both` before and after that
//!    fence, or `refused` before it.
//! 5. `both` is stored after a barrier. `refused` is stored if no `light` has been free before, or
//!    after the period of grace.
//!
//! # Undecided to barriers: from fences on both sides to a fence on one
//!
//! A `light` fences until it has seen `barriers`. A fence is right with each kind of `heavy`,
//! because the kernel's barrier includes a fence of its caller. So a thread that sees the change
//! late does no harm. A `light` that has seen `barriers` leaves the fence to `heavy`, and a `heavy`
//! that does not use the kernel's would be wrong with it. There is none (Invariants 4 and 5):
//! nothing went to sleep with a fence alone in the undecided mode, because `heavy` decides first.
//! It registers although another thread may be at that as well. The kernel then lets every
//! processor pass through its scheduler before either registration returns. So each later barrier
//! reaches all threads of the process that run.
//!
//! # Barriers to both: they are too many
//!
//! The thread that finds it stores `leaving`, and then makes one more barrier. The barrier falls
//! into each other thread before or after that thread's write. A write before it is visible when
//! the barrier is over. After a write behind it the thread loads the mode, finds `leaving`, and
//! fences. So from then on a fence suffices in `heavy`, and the thread stores `both`. Meanwhile
//! each other `heavy` makes a barrier, which is right with each kind of `light`, and stores `both`
//! after it. So a thread that ends in the middle of the change keeps no other thread from it.
//!
//! # Both to barriers: another try
//!
//! A `light` that sees `barriers` does not fence. At that moment another thread may be in a `heavy`
//! that only fences. That `heavy` looks at the mode after its fence. If it finds another mode, it
//! begins again. If it finds the same `both`, its fence precedes the one between `returning` and
//! `barriers`. The `light` has acquired `barriers`. So the read after the `light` sees what was
//! written before the `heavy`.
//!
//! # Revoked: what a thread may still be doing that has seen `barriers`
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
//! **Assumption:** a store becomes visible to all processors within that period of its retirement.
//! The architectures promise a finite time and name no bound. Morrison and Afek, "Temporally
//! bounding TSO for fence-free asymmetric synchronization", ASPLOS 2015, build on the same bound
//! and argue for far smaller ones. It is assumed for this one moment in the life of a process only,
//! and only if a filter takes away what was granted.
//!
//! Each `heavy` that finds the refusal, or comes before the grace is over, waits for all of it. Why
//! not let sleepers wake up now and then and look again instead: that helps locks, because their
//! sleepers can be late. Hazard pointers free memory when `heavy` has returned, a thief enters a
//! queue, a pool counts its last worker out: none of them can look again later. Here all users are
//! right at once, and none of them has code for it.

use core::sync::atomic::compiler_fence;

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::sharing::{Answer, Kernel, Sharing};

const UNDECIDED: u32 = 0;
const BARRIERS: u32 = 1;
const LEAVING: u32 = 2;
const BOTH: u32 = 3;
const RETURNING: u32 = 4;
const REVOKED: u32 = 5;
const REFUSED: u32 = 6;

/// The mode is the word modulo this, and the number of the period of barriers the quotient.
const PERIOD: u32 = 8;

/// The number of undecided `light`s of which the last one registers. They cost half a millisecond
/// in one thread, several where threads compete for the count. A registration beside other threads
/// costs 7 to 19 ms. The example `costs` prints both.
const LIGHTS: u32 = 1 << 17;

/// The mode of a process.
#[derive(Debug)]
pub struct Modes {
    /// One of the modes above, and the period.
    word: AtomicU32,
    /// The number of undecided `light`s so far. All threads write it, until the mode is decided.
    lights: AtomicU32,
    /// The barriers of the process.
    barriers: Sharing,
}

impl Modes {
    /// Makes the mode of a process that has not decided.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub const fn new() -> Self {
        Self {
            word: AtomicU32::new(UNDECIDED),
            lights: AtomicU32::new(0),
            barriers: Sharing::new(),
        }
    }

    /// Orders the caller's writes before its reads, towards [`heavy`](Self::heavy).
    #[inline]
    pub fn light(&self, kernel: &impl Kernel) {
        // The caller's store comes before the load of the mode also for the compiler: see
        // "Revoked".
        compiler_fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `change` in `end_returning`. A stale mode of another
        // kind fences, and a stale `barriers` is what the barrier of `leave` and the grace are for.
        if self.word.load(Ordering::Acquire) % PERIOD == BARRIERS {
            compiler_fence(Ordering::SeqCst);
        } else {
            self.light_with_fence(kernel);
        }
    }

    #[cold]
    #[inline(never)]
    fn light_with_fence(&self, kernel: &impl Kernel) {
        // SeqCst: pairs with the fence of `heavy`, its own or the kernel's.
        fence(Ordering::SeqCst);
        // Relaxed, both: a hint, and a number. The caller's order is the fence above.
        if self.word.load(Ordering::Relaxed) == UNDECIDED
            && self.lights.fetch_add(1, Ordering::Relaxed) == LIGHTS - 1
        {
            self.decide(kernel);
        }
    }

    /// Orders the caller's writes before its reads, towards [`light`](Self::light) and `heavy`.
    pub fn heavy(&self, kernel: &impl Kernel) {
        loop {
            // Relaxed: each way out has a fence after it. That pairs with the Release of the
            // change, so the registration, the barrier, or the grace, is before what follows.
            let word = self.word.load(Ordering::Relaxed);
            match word % PERIOD {
                UNDECIDED => self.decide(kernel),
                mode @ (BARRIERS | LEAVING | RETURNING) => {
                    match (self.barriers.barrier(kernel), mode) {
                        (Answer::Refused, _) => self.revoke(),
                        (Answer::TooMany, BARRIERS) => return self.leave(word, kernel),
                        (_, LEAVING) => return self.end_leaving(word),
                        (_, RETURNING) => return self.end_returning(word),
                        _ => return,
                    }
                }
                BOTH => {
                    // SeqCst: pairs with the fence of `light`, of `go_back`, and of another
                    // `heavy`.
                    fence(Ordering::SeqCst);
                    // Relaxed: the fence orders it (see "Both to barriers").
                    if self.word.load(Ordering::Relaxed) == word {
                        if kernel.is_worth_a_try() {
                            self.go_back(word);
                        }
                        return;
                    }
                }
                REVOKED => self.settle(word, kernel),
                _ => {
                    // SeqCst: as above.
                    fence(Ordering::SeqCst);
                    return;
                }
            }
        }
    }

    /// Waits until all is visible that threads have written before they relied on barriers that
    /// are not made any more. For a thread that has made them fence.
    pub fn wait_until_visible(&self, kernel: &impl Kernel) {
        // Relaxed: a stale mode asks for a barrier that is refused, or sleeps without need.
        let mode = self.word.load(Ordering::Relaxed) % PERIOD;
        let barriers = (BARRIERS..=RETURNING).contains(&mode);
        if !barriers || self.barriers.barrier(kernel) == Answer::Refused {
            // Release: with the assumption above, those threads see what the caller has told them
            // before the grace is over.
            fence(Ordering::Release);
            kernel.sleep();
            // Acquire: the caller sees what they had written.
            fence(Ordering::Acquire);
        }
    }

    /// Goes back to barriers, if they are worth another try.
    pub fn reconsider(&self, kernel: &impl Kernel) {
        // Relaxed: the exchange in `go_back` decides.
        let word = self.word.load(Ordering::Relaxed);
        if word % PERIOD == BOTH && kernel.is_worth_a_try() {
            self.go_back(word);
        }
    }

    /// Returns the number of the period of barriers, from 1 on, if `light` is free.
    pub fn period(&self) -> Option<u32> {
        // Acquire: as in `light`, for a caller that is about not to fence.
        let word = self.word.load(Ordering::Acquire);
        (word % PERIOD == BARRIERS).then_some(word / PERIOD)
    }

    /// Ends all barriers, for good. Sleeps if there may have been one.
    pub fn refuse(&self, kernel: &impl Kernel) {
        if !self.change(UNDECIDED, REFUSED) {
            self.revoke();
            // Relaxed: the exchange in `settle` decides. Another thread may have done the rest.
            let word = self.word.load(Ordering::Relaxed);
            if word % PERIOD == REVOKED {
                self.settle(word, kernel);
            }
        }
    }

    /// Registers if the kernel allows it.
    #[cold]
    fn decide(&self, kernel: &impl Kernel) {
        let first = if kernel.register() { PERIOD + BARRIERS } else { REFUSED };
        // If the exchange fails, another thread has decided.
        let _ = self.change(UNDECIDED, first);
    }

    /// Changes from barriers to fences on both sides, for a caller that has made a barrier.
    #[cold]
    fn leave(&self, word: u32, kernel: &impl Kernel) {
        let leaving = word - BARRIERS + LEAVING;
        // If it is refused, the next `heavy` finds that out.
        if self.change(word, leaving) {
            kernel.leaves();
            if self.barriers.barrier(kernel) != Answer::Refused {
                self.end_leaving(leaving);
            }
        }
    }

    /// Ends a change to fences on both sides, after a barrier.
    fn end_leaving(&self, word: u32) {
        let _ = self.change(word, word - LEAVING + BOTH);
    }

    /// Changes from fences on both sides to barriers.
    #[cold]
    fn go_back(&self, word: u32) {
        let returning = word - BOTH + RETURNING;
        if self.change(word, returning) {
            // SeqCst: pairs with the fence of a `heavy` that still finds `both` afterwards.
            fence(Ordering::SeqCst);
            self.end_returning(returning);
        }
    }

    /// Ends a change to barriers, after a fence or a barrier. The next period begins, and after the
    /// last number the first.
    fn end_returning(&self, word: u32) {
        let next = word.checked_add(PERIOD).unwrap_or(PERIOD + RETURNING);
        let _ = self.change(word, next - RETURNING + BARRIERS);
    }

    /// Makes every `light` fence that loads the mode from now on, if a barrier has been refused.
    #[cold]
    fn revoke(&self) {
        // Relaxed: the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        while (BARRIERS..=RETURNING).contains(&(word % PERIOD)) && !self.change(word, REVOKED) {
            word = self.word.load(Ordering::Relaxed);
        }
        // Release: with the assumption above, each `light` sees the mode before the grace is over.
        fence(Ordering::Release);
    }

    /// Waits for the stores of the `light`s that have not seen the revocation.
    #[cold]
    fn settle(&self, word: u32, kernel: &impl Kernel) {
        kernel.sleep();
        let _ = self.change(word, REFUSED);
    }

    /// Changes the word if it is still `from`. Returns whether it was.
    fn change(&self, from: u32, to: u32) -> bool {
        // Release: what led to the change comes before it (pairs with the Acquire of `light` and of
        // `period`, and with the fences of `heavy`). Relaxed on failure: the caller looks again, or
        // is done.
        self.word.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
