//! The barrier that finds out whether the missing members are on a processor.
//!
//! Why not spin for a time and then sleep, as others do. The right time depends on whether the
//! missing members run. If they run, the wait is over in a fraction of a microsecond, and yielding
//! costs more than the wait. If one of them waits for this very processor, each pause is lost. If a
//! stranger has it, only sleeping gets it back in less than a time slice (`adaptive_policy.rs`).
//! Barriers that guess always do one of the three. They are slower by factors of up to some
//! hundreds where another is right (`cargo contest barriers --only grid`).
//!
//! ```text
//!  arrive ─┬─ more members than processors: some missing ones do not run
//!          │    yield, for 1 ms, then sleep
//!          └─ 32 looks ─► inquire
//!               ├─ all missing ones run: look, for 200 µs, then sleep
//!               ├─ one was preempted, or last ran on this processor:
//!               │    yield, for 1 ms, then sleep
//!               ├─ one is blocked: yield, for it may just be waking up;
//!               │    after 200 µs sleep
//!               └─ it cannot be told: look for as long as 40 calls to the
//!                    kernel take, yield, for 1 ms, then sleep
//!
//!  if the adaptive policy says sleep: where it says yield, sleep; and where it
//!  cannot be told, look for as long as it takes to be woken up
//! ```
//!
//! `arrivals.rs` says how arrivals are counted and sleepers woken. `member_table.rs` says which
//! members are missing, and where they are. The last arrival makes a system call only if a member
//! sleeps.
//!
//! # Orderings
//!
//! A look is Acquire and pairs with the arrivals of all others. All that decides how to wait is
//! Relaxed: it is a guess.
//!
//! Source: the competitive spinning of Karlin, Li, Manasse and Owicki, SOSP 1991. Their condition b
//! (the other thread runs) is observed instead of assumed. That busy waiting pays if and only if
//! the members run together is Feitelson and Rudolph's observation, JPDC 1992.

use core::cell::Cell;
use core::fmt;

use stanchion_competitive::cost;
use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::presence::Presence;
use stanchion_machine::wait::{Spin, WaitPolicy, calls, transfers, wait_until_deadline};
use stanchion_machine::{thread, topology};

use super::adaptive_policy::{AdaptivePolicy, LONG_NS, MIN_AWAKE_CROWDED_NS, MIN_AWAKE_NS};
use super::arrivals::{Arrival, ArrivalWord};
use super::interface::{Barrier, Broken, Crossing, WrongSize};
use super::member_table::{Announcement, MemberTable};

/// Looks before the first inquiry, if all members can be on a processor: a crossing by two threads
/// takes about so long.
const BRIEF: u32 = 32;

/// The time for which a waiter looks at the word while the missing members run: some times what it
/// costs to sleep and wake up.
const RUNNING_NS: u64 = 200_000;

/// The time for which a waiter looks at the word where it cannot be told whether they run, in
/// calls to the kernel.
const UNKNOWN_CALLS: u64 = 40;

/// The time for which a blocked member may be about to wake up.
const WAKING_NS: u64 = 200_000;

/// The time for which a waiter yields again and again before it sleeps, if the policy does not say
/// to sleep at once.
const YIELDING_NS: u64 = 1_000_000;

/// The time for which a waiter stands still between two inquiries on a simulated machine, in
/// transfers.
const LOOK_TRANSFERS: u64 = 10;

/// A barrier at which members spin while the missing members run, yield when one was preempted, and
/// sleep when one is blocked, when that has been cheaper, or when the budget is spent. They wait
/// through [`Waiter`](super::Waiter)s.
///
/// - To cross: one exchange for each arrival, and a write to a line of its own for each member. A
///   system call if a member sleeps.
/// - Size: 2 lines, and one for each member if there are not more than processors.
/// - With more threads than processors: made for them. Yields while that is cheap, sleeps where it
///   is not.
///
/// `cargo contest barriers` compares it with others. The guide's page on this crate has the table,
/// which also shows where it loses.
///
/// A thread that may run on one processor only is registered with [`stanchion_machine::presence`]
/// at its first wait, until it ends. That takes some 20 µs, 8 KiB of locked memory, and two threads
/// for a moment when it is the first of the process. From then on each time that it leaves or takes
/// a processor costs 1.3 µs more. Other threads are seen if they have registered themselves.
///
/// A [`WaitPolicy`] of the caller passes the time between two looks. When to yield and to sleep is
/// decided here: a policy that yields or sleeps of itself makes that worse.
///
/// ```
/// use stanchion_gang::{Waiter, barrier::CoResident};
///
/// let barrier = CoResident::new(3)?;
/// let leaders = std::thread::scope(|scope| {
///     let members: Vec<_> = Waiter::all(&barrier)
///         .into_iter()
///         .map(|mut member| scope.spawn(move || member.wait().unwrap().is_leader()))
///         .collect();
///     members.into_iter().map(|member| member.join().unwrap()).filter(|&leads| leads).count()
/// });
/// assert_eq!(leaders, 1);
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct CoResident {
    /// Counts arrivals, and has the sleepers. Members write it.
    arrivals: ArrivalWord,
    /// Decides between yielding and sleeping. Members that waited long write it.
    adaptive_policy: topology::CachePadded<AdaptivePolicy>,
    /// Where the members are. Each writes its own line. None if there are more members than
    /// processors: then some are off, and which ones changes too fast to inquire.
    members: Option<MemberTable>,
}

/// The state of a member of a [`CoResident`].
#[derive(Debug)]
pub struct CoResidentState {
    /// Which member it is.
    index: usize,
    /// The contents of its line.
    announcement: Announcement,
}

impl CoResident {
    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`](super::MOST_MEMBERS).
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let arrivals = ArrivalWord::for_members(members)?;
        let members = (members <= topology::usable()).then(|| MemberTable::new(members));
        let min_awake_ns = if members.is_some() { MIN_AWAKE_NS } else { MIN_AWAKE_CROWDED_NS };
        Ok(Self {
            arrivals,
            adaptive_policy: topology::CachePadded::new(AdaptivePolicy::new(min_awake_ns)),
            members,
        })
    }

    fn wait_for(
        &self,
        arrival: Arrival,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<(), Broken> {
        let step = Cell::new(Step::Look);
        let mut inquiry = Inquiry { looks: 0, first: None };
        let mut policy = Stepping { policy, step: &step };
        // Acquire: pairs with the arrivals of all others.
        let seen = wait_until_deadline(
            self.arrivals.word(),
            Ordering::Acquire,
            |word| {
                let over = arrival.is_over(word);
                if !over {
                    step.set(self.next(arrival, &mut inquiry));
                }
                over || step.get() == Step::Sleep
            },
            &mut policy,
            deadline,
        );
        let seen = match seen {
            Some(word) if !arrival.is_over(word) => self.arrivals.sleep(arrival, deadline),
            seen => seen,
        };
        if let Some(first) = inquiry.first {
            let now = clock::now();
            if now.nanos_since(first) > LONG_NS {
                self.adaptive_policy.record_long_wait(arrival.phase(), now);
            }
        }
        match seen {
            Some(word) => arrival.outcome(word),
            None => self.arrivals.give_up(arrival),
        }
    }

    /// Returns the next step of a waiter that has found the phase not over.
    #[inline]
    fn next(&self, arrival: Arrival, inquiry: &mut Inquiry) -> Step {
        // In a model, where no time passes, a budget is spent by choice.
        if stanchion_machine::choice() {
            return Step::Sleep;
        }
        // Most waits end within the first looks.
        if self.members.is_some() && inquiry.looks < BRIEF {
            inquiry.looks += 1;
            return Step::Look;
        }
        self.inquire(arrival.phase(), inquiry)
    }

    #[cold]
    fn inquire(&self, phase: u64, inquiry: &mut Inquiry) -> Step {
        let now = clock::now();
        let waited = now.nanos_since(*inquiry.first.get_or_insert(now));
        let sleeps = self.adaptive_policy.should_sleep(phase, now);
        let unknown = if sleeps { cost::current() } else { calls(UNKNOWN_CALLS) };
        let missing = self.members.as_ref().map(|members| members.missing(phase));
        let (step, budget) = match missing {
            // All missing members run.
            Some(Presence::Running) => (Step::Look, RUNNING_NS),
            // It cannot be told: they may run.
            Some(Presence::Unknown) if waited < unknown => (Step::Look, unknown),
            // One is blocked, and may be about to wake up.
            Some(Presence::Blocked) => (Step::Yield, WAKING_NS),
            // One waits for a processor, maybe for this one.
            Some(Presence::Preempted | Presence::Unknown) | None => (Step::Yield, YIELDING_NS),
        };
        if waited > budget || sleeps && step == Step::Yield { Step::Sleep } else { step }
    }
}

/// A step of a waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Look,
    Yield,
    Sleep,
}

/// The inquiries of a waiter so far.
struct Inquiry {
    /// Looks before the first inquiry.
    looks: u32,
    /// The time of the first inquiry.
    first: Option<Ticks>,
}

/// A policy for the looks, with the other steps in between.
struct Stepping<'a, P> {
    /// The caller's policy.
    policy: &'a mut P,
    /// The next step, which the waiter writes.
    step: &'a Cell<Step>,
}

impl<P: WaitPolicy> WaitPolicy for Stepping<'_, P> {
    fn start() -> Self {
        unreachable!("made by `wait_for`")
    }

    #[inline]
    fn pause(&mut self) {
        self.policy.pause();
        if self.step.get() == Step::Yield {
            thread::yield_now();
        }
    }

    fn leaves(&self) -> bool {
        self.step.get() == Step::Yield || self.policy.leaves()
    }

    fn pausing(&self) -> u64 {
        if self.step.get() == Step::Yield {
            0
        } else {
            self.policy.pausing().min(transfers(LOOK_TRANSFERS))
        }
    }

    fn paused(&mut self, nanos: u64) {
        self.policy.paused(nanos);
    }
}

impl Barrier for CoResident {
    type MemberState = CoResidentState;

    fn with_members(members: usize) -> Result<Self, WrongSize> {
        Self::new(members)
    }

    fn members(&self) -> usize {
        self.arrivals.members()
    }

    fn member_state(&self, index: usize) -> Self::MemberState {
        assert!(index < self.members(), "member {index} of a barrier for {}", self.members());
        CoResidentState { index, announcement: Announcement::NOTHING }
    }

    #[inline]
    fn wait_at(
        &self,
        state: &mut Self::MemberState,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        let arrival = self.arrivals.arrive()?;
        if let Some(members) = &self.members {
            let CoResidentState { index, announcement } = state;
            members.announce(*index, announcement, arrival.phase(), arrival.is_last());
        }
        if arrival.is_last() {
            return Ok(Crossing::LEADER);
        }
        self.wait_for(arrival, policy, deadline)?;
        Ok(Crossing::FOLLOWER)
    }

    /// Waits by a policy that only looks: the barrier itself yields and sleeps.
    #[inline]
    fn wait_by_default(
        &self,
        state: &mut Self::MemberState,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.wait_at(state, &mut Spin, deadline)
    }

    fn break_with(&self, why: Broken) {
        self.arrivals.break_with(why);
    }

    fn broken(&self) -> Option<Broken> {
        self.arrivals.broken()
    }
}

impl fmt::Debug for CoResident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoResident")
            .field("members", &self.members())
            .field("arrived", &self.arrivals.arrived())
            .field("broken", &self.broken())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static_assertions::assert_impl_all!(CoResident: Send, Sync);
    static_assertions::assert_impl_all!(CoResidentState: Send);

    #[test]
    fn members_are_watched_only_if_all_can_run_at_once() {
        let usable = topology::usable();
        assert!(CoResident::new(usable).unwrap().members.is_some());
        assert!(CoResident::new(usable + 1).unwrap().members.is_none());
    }
}
