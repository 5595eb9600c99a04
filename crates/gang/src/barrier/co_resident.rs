//! The barrier that asks who is on a processor.
//!
//! Why not spin for a time and then sleep, as others: how long is right depends on whether those
//! who are missing run. If they do, the wait is over in a fraction of a microsecond, and giving the
//! processor away costs more than the wait. If one of them waits for this very processor, each
//! pause is lost. If a stranger has it, only sleeping gets it back in less than a time slice
//! (`adaptive_policy.rs`). Barriers that guess do one of the three always, and are slower by factors of up to
//! some hundreds where another is right (`cargo bench -p benches --bench gang -- grid`).
//!
//! ```text
//!  arrive ─┬─ more members than processors, so some are missing that do not run: yield, for 1 ms, then sleep
//!          └─ 32 looks ─► ask
//!                          ├─ all who are missing run: look, for 200 µs, then sleep
//!                          ├─ one was preempted, or last ran on this processor: yield, for 1 ms, then sleep
//!                          ├─ one is blocked: yield, for it may just be waking up; after 200 µs sleep
//!                          └─ it cannot be told: look for 4 µs, yield, for 1 ms, then sleep
//!
//!  if the habit is to sleep: where it says yield, sleep; and where it cannot be told, look for as long as it takes to be woken up
//! ```
//!
//! Arrivals are counted, and their sleepers woken, as `arrivals.rs` says. Which members are
//! missing, and where they are, `member_table.rs` tells. The last arrival makes a call to the kernel
//! only if a member sleeps.
//!
//! # Orderings
//!
//! A look is Acquire and pairs with the arrivals of all others. Whatever decides how to wait is
//! Relaxed: it is a guess.
//!
//! Source: the competitive spinning of Karlin, Li, Manasse and Owicki, SOSP 1991, whose condition b
//! (the other one runs) is asked for instead of assumed; the observation that busy waiting pays if
//! and only if the members run together is Feitelson and Rudolph's, JPDC 1992.

use core::cell::Cell;
use core::fmt;

use machine::atomic::Ordering;
use machine::clock::{self, Deadline, Ticks};
use machine::presence::Presence;
use machine::wait::{Spin, WaitPolicy, wait_until_deadline};
use machine::{thread, topology};
use stanchion_competitive::cost;

use super::adaptive_policy::{AdaptivePolicy, LONG_NS, MIN_AWAKE_CROWDED_NS, MIN_AWAKE_NS};
use super::arrivals::{Arrival, ArrivalWord};
use super::interface::{Barrier, Broken, Crossing, MOST_MEMBERS, WrongSize};
use super::member_table::{Announcement, MemberTable};

/// Looks before the first question, if all members can be on a processor: a crossing by two threads
/// takes about so long.
const BRIEF: u32 = 32;

/// How long a waiter looks at a word that those must write who run: what it costs to sleep and wake
/// up, some times over.
const RUNNING_NS: u64 = 200_000;

/// The same where nobody knows whether they run.
const UNKNOWN_NS: u64 = 4_000;

/// How long one who is blocked may be about to wake up.
const WAKING_NS: u64 = 200_000;

/// How long a waiter gives its processor away, again and again, before it sleeps, if it is not the
/// habit to sleep at once.
const YIELDING_NS: u64 = 1_000_000;

/// On a simulated machine: how long a waiter stands still between two questions.
const LOOK_NS: u64 = 250;

/// A barrier whose members spin while those who are missing run, yield when one was preempted, and
/// sleep when one is blocked, when that has been cheaper, or when the budget is spent. They wait
/// through [`Waiter`](super::Waiter)s.
///
/// | | |
/// | --- | --- |
/// | to cross | one exchange for each arrival, a write to a line of its own for each member; a call to the kernel if somebody sleeps |
/// | size | 2 lines, and one for each member if there are not more than processors |
/// | more threads than processors | at home: yields while that is cheap, sleeps where it is not |
///
/// How it does beside others is what `cargo bench -p benches --bench gang` prints; the crate's
/// README has the table, also of where it loses.
///
/// A thread that may run on one processor only is registered with [`machine::presence`] at its
/// first wait, until it ends: some 20 µs, 8 KiB of locked memory, and two threads for a moment when
/// it is the first of the process. From then on each time that it leaves or takes a processor costs
/// 1.3 µs more. Other threads are seen if they have registered themselves.
///
/// A [`WaitPolicy`] that is handed in passes the time between two looks; to yield and to sleep is
/// decided here. One that yields or sleeps of itself makes that worse.
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
    arrivals: ArrivalWord,
    habit: topology::CachePadded<AdaptivePolicy>,
    /// None if there are more members than processors: then some are off, and which ones changes
    /// too fast to ask.
    members: Option<MemberTable>,
}

/// A member of a [`CoResident`].
#[derive(Debug)]
pub struct CoResidentState {
    index: usize,
    announcement: Announcement,
}

impl CoResident {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let count = WrongSize::check(members, MOST_MEMBERS)?;
        let members = (members <= topology::usable()).then(|| MemberTable::new(members));
        let patience = if members.is_some() { MIN_AWAKE_NS } else { MIN_AWAKE_CROWDED_NS };
        Ok(Self {
            arrivals: ArrivalWord::new(count),
            habit: topology::CachePadded::new(AdaptivePolicy::new(patience)),
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
        let mut asked = Inquiry { looks: 0, first: None };
        let mut policy = Stepping { policy, step: &step };
        // Acquire: pairs with the arrivals of all others.
        let seen = wait_until_deadline(
            self.arrivals.word(),
            Ordering::Acquire,
            |word| {
                let over = arrival.is_over(word);
                if !over {
                    step.set(self.next(arrival, &mut asked));
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
        if let Some(first) = asked.first {
            let now = clock::now();
            if now.nanos_since(first) > LONG_NS {
                self.habit.record_long_wait(arrival.phase(), now);
            }
        }
        match seen {
            Some(word) => arrival.outcome(word),
            None => self.arrivals.give_up(arrival),
        }
    }

    /// What a waiter does next that has found the phase not over.
    #[inline]
    fn next(&self, arrival: Arrival, asked: &mut Inquiry) -> Step {
        // In a model, where no time passes, a budget is spent by choice.
        if machine::choice() {
            return Step::Sleep;
        }
        if self.members.is_some() && asked.looks < BRIEF {
            asked.looks += 1;
            return Step::Look;
        }
        self.ask(arrival.phase(), asked)
    }

    #[cold]
    fn ask(&self, phase: u64, asked: &mut Inquiry) -> Step {
        let now = clock::now();
        let waited = now.nanos_since(*asked.first.get_or_insert(now));
        let sleeps = self.habit.should_sleep(phase, now);
        let unknown = if sleeps { cost::current() } else { UNKNOWN_NS };
        let missing = self.members.as_ref().map(|members| members.missing(phase));
        let (step, budget) = match missing {
            Some(Presence::Running) => (Step::Look, RUNNING_NS),
            Some(Presence::Unknown) if waited < unknown => (Step::Look, unknown),
            Some(Presence::Blocked) => (Step::Yield, WAKING_NS),
            Some(Presence::Preempted | Presence::Unknown) | None => (Step::Yield, YIELDING_NS),
        };
        if waited > budget || sleeps && step == Step::Yield { Step::Sleep } else { step }
    }
}

/// What a waiter does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Look,
    Yield,
    Sleep,
}

/// What a waiter has asked so far.
struct Inquiry {
    looks: u32,
    /// When it asked first.
    first: Option<Ticks>,
}

/// A policy for the looks, and the steps that are none.
struct Stepping<'a, P> {
    policy: &'a mut P,
    step: &'a Cell<Step>,
}

impl<P: WaitPolicy> WaitPolicy for Stepping<'_, P> {
    fn start() -> Self {
        unreachable!("made by the one who waits")
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
        if self.step.get() == Step::Yield { 0 } else { self.policy.pausing().min(LOOK_NS) }
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

    /// Only looks where the rule says so, which yields and sleeps of itself.
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
