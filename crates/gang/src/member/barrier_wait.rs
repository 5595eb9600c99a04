//! The wait of a member at its gang's barrier.

use stanchion_machine::clock::{Ticks, now};
use stanchion_machine::wait::WaitPolicy;

use crate::executor::MemberContext;

/// The wait policy of a member at its gang's barrier.
///
/// The member spins while the gang is on, and gives its processor up when it is not. After the
/// executor's `spin` it yields the CPU between two looks. After some of these yields it takes no
/// part in gang scheduling any more, gives its processor up, and sleeps until the barrier wakes it.
///
/// Why it does not ask why another member has not come: a member that is blocked, one that sleeps
/// without having said so, and one that has more to do than the others all keep it waiting for
/// longer than sleeping costs.
pub(super) struct BarrierWait<'c> {
    /// The waiting member. None only in a policy of `start`.
    context: Option<&'c MemberContext>,
    /// The stage of the wait.
    stage: Stage,
}

enum Stage {
    /// So many pauses are left before it reads the clock. Most waits end here.
    Brief(u32),
    /// It checks the clock and the turn, since then.
    Spinning(Ticks),
    /// It checks the turn, and has yielded so often.
    Yielding(u32),
    /// The member is inactive.
    Sleeping,
}

/// Pauses before it reads the clock and checks the turn: at most 1 µs on any processor known.
const BRIEF_PAUSES: u32 = 16;

/// Yields before it gives its processor up and sleeps.
const YIELDS: u32 = 64;

impl<'c> BarrierWait<'c> {
    pub(super) fn new(context: &'c MemberContext) -> Self {
        Self { context: Some(context), stage: Stage::Brief(BRIEF_PAUSES) }
    }
}

impl WaitPolicy for BarrierWait<'_> {
    /// Creates a policy without a member, which yields at once.
    fn start() -> Self {
        Self { context: None, stage: Stage::Yielding(0) }
    }

    #[inline]
    fn pause(&mut self) {
        let Some(context) = self.context else { return stanchion_machine::thread::yield_now() };
        match &mut self.stage {
            // Neither the clock nor the turn is read yet.
            Stage::Brief(left) => {
                *left -= 1;
                if *left == 0 {
                    self.stage = Stage::Spinning(now());
                }
                stanchion_machine::hint::spin_loop();
            }
            // The other members are on: they soon come, or the turn ends.
            Stage::Spinning(since) => {
                if now().nanos_since(*since) >= context.spin_ns() {
                    self.stage = Stage::Yielding(0);
                }
                context.check_turn();
                stanchion_machine::hint::spin_loop();
            }
            // Another thread may want the CPU, maybe a member of this gang.
            Stage::Yielding(yields) if *yields < YIELDS => {
                *yields += 1;
                context.check_turn();
                stanchion_machine::thread::yield_now();
            }
            // The wait is a long one.
            Stage::Yielding(_) => {
                context.deactivate();
                self.stage = Stage::Sleeping;
            }
            // The barrier puts the thread to sleep instead.
            Stage::Sleeping => stanchion_machine::thread::yield_now(),
        }
    }

    fn sleeps(&self) -> bool {
        matches!(self.stage, Stage::Sleeping)
    }

    fn pausing(&self) -> u64 {
        let spent = match &self.stage {
            Stage::Brief(_) => 0,
            Stage::Spinning(since) => now().nanos_since(*since),
            Stage::Yielding(_) | Stage::Sleeping => return 0,
        };
        self.context.map_or(0, |context| {
            context.spin_ns().saturating_sub(spent).min(context.remaining_ns())
        })
    }

    fn paused(&mut self, nanos: u64) {
        let _ = nanos;
        if let Stage::Brief(_) = self.stage {
            self.stage = Stage::Spinning(now());
        }
    }
}

impl Drop for BarrierWait<'_> {
    fn drop(&mut self) {
        if let (Some(context), Stage::Sleeping) = (self.context, &self.stage) {
            context.reactivate();
        }
    }
}
