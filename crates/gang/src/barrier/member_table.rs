//! A table in which the members of a barrier see each other: which members have not arrived, and
//! whether they are on a processor.
//!
//! A member has a line of its own and writes there which thread it is, where it was last, and in
//! which phase it has arrived. Why not a bit mask of members that have arrived: it would be a
//! second word that all write, and is read in few of the waits. These lines are written by their
//! members, and read only by a waiter that has looked in vain for a while.
//!
//! Two sources tell whether a thread is on a processor:
//!
//! - Where it last was, if that is the processor of the member that asks: then it is off. This
//!   costs nothing.
//! - [`stanchion_machine::presence`], if its thread is registered: tells all, and costs 1.3 µs more
//!   for each time that the thread leaves or takes a processor.
//!
//! `cargo bench -p benches --bench gang -- switch` prints the price of the second: a yield to
//! another thread takes 1.6 µs, and 2.9 µs if both are registered. So only threads that may run on
//! one processor only are registered here. Such a thread seldom leaves its processor unless another
//! program takes it, which nothing else would tell. And if all threads shared one processor, the
//! first source would tell. Other threads are seen if they register themselves.
//!
//! # Orderings
//!
//! All Relaxed: what is read is out of date anyway, and decides only how a member waits.

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::presence::{self, Presence};
use stanchion_machine::thread;
use stanchion_machine::topology::{self, CachePadded};

/// A line for each member.
pub(super) struct MemberTable(Box<[CachePadded<AtomicU64>]>);

/// The line of a member.
///
/// ```text
/// thread (16 bits) | processor (16 bits) | phase in which it has arrived (32 bits)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement(u64);

/// The number of no thread and of no processor.
const UNKNOWN: u64 = 0xffff;

const THREAD_SHIFT: u32 = 48;
const PROCESSOR_SHIFT: u32 = 32;

impl Announcement {
    /// The line of a member that has not arrived in any phase.
    pub(super) const NOTHING: Self = Self(u64::MAX);

    fn new(thread: u64, processor: u64, phase: u64) -> Self {
        Self(thread << THREAD_SHIFT | processor << PROCESSOR_SHIFT | phase & u64::from(u32::MAX))
    }

    fn thread(self) -> u64 {
        self.0 >> THREAD_SHIFT
    }

    fn processor(self) -> u64 {
        self.0 >> PROCESSOR_SHIFT & UNKNOWN
    }

    fn has_arrived_in(self, phase: u64) -> bool {
        self.0 as u32 == phase as u32
    }

    /// Returns where the member is, as far as a thread on the processor `here` can tell.
    fn presence(self, here: u64) -> Presence {
        let presence = match self.thread() {
            UNKNOWN => Presence::Unknown,
            thread => presence::of(thread as usize),
        };
        if presence == Presence::Unknown && here != UNKNOWN && self.processor() == here {
            return Presence::Preempted;
        }
        presence
    }
}

impl MemberTable {
    pub(super) fn new(count: usize) -> Self {
        let line = |_| CachePadded::new(AtomicU64::fresh(Announcement::NOTHING.0));
        Self((0..count).map(line).collect())
    }

    /// Records that the calling thread is member `index` and has arrived in `phase`. No member
    /// waits for the last arrival of a phase: it records only where it is, if that is new.
    #[inline]
    pub(super) fn announce(
        &self,
        index: usize,
        announcement: &mut Announcement,
        phase: u64,
        last: bool,
    ) {
        let thread = number(thread::index());
        let now = Announcement::new(thread, here(), phase);
        if thread != announcement.thread() {
            register_presence();
        } else if last && now.processor() == announcement.processor() {
            return;
        }
        *announcement = now;
        self.0[index].store(now.0, Ordering::Relaxed);
    }

    /// Returns where the missing member is that is furthest from arriving in `phase`.
    #[cold]
    pub(super) fn missing(&self, phase: u64) -> Presence {
        let here = here();
        let mut furthest = Presence::Running;
        for line in &self.0 {
            let announcement = Announcement(line.load(Ordering::Relaxed));
            if announcement.has_arrived_in(phase) {
                continue;
            }
            match announcement.presence(here) {
                // Nothing is more urgent: it may wait for this processor.
                Presence::Preempted => return Presence::Preempted,
                Presence::Running => {}
                presence => furthest = presence,
            }
        }
        furthest
    }
}

/// Returns the processor that the calling thread is on.
#[inline]
fn here() -> u64 {
    number(topology::current())
}

#[inline]
fn number(number: Option<usize>) -> u64 {
    number.map_or(UNKNOWN, |number| (number as u64).min(UNKNOWN))
}

stanchion_machine::thread_local! {
    /// The thread's registration; kept until it ends.
    static REGISTRATION: core::cell::RefCell<Option<presence::Registration>> =
        core::cell::RefCell::new(None);
}

/// Registers the calling thread until it ends, if it may run on one processor only. Does nothing
/// where the system refuses.
#[cold]
fn register_presence() {
    if topology::processors().len() > 1 {
        return;
    }
    let _ = REGISTRATION.try_with(|mine| {
        if let Ok(mut mine) = mine.try_borrow_mut()
            && mine.is_none()
        {
            *mine = presence::register().ok();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_last_on_this_processor_is_preempted() {
        let seen = |processor| Announcement::new(UNKNOWN, processor, 7).presence(3);
        assert_eq!(seen(3), Presence::Preempted);
        assert_eq!(seen(4), Presence::Unknown);
        assert_eq!(seen(UNKNOWN), Presence::Unknown);
        assert_eq!(Announcement::NOTHING.presence(UNKNOWN), Presence::Unknown);
    }

    #[test]
    fn arrived_members_are_not_missing() {
        let phase = u64::from(u32::MAX) + 5;
        let members = MemberTable::new(2);
        assert_eq!(members.missing(phase), Presence::Unknown, "no member is known");
        let mut mine = Announcement::NOTHING;
        members.announce(0, &mut mine, phase, false);
        members.announce(1, &mut { Announcement::NOTHING }, phase, false);
        assert_eq!(members.missing(phase), Presence::Running, "no member is missing");
        assert_ne!(members.missing(phase + 1), Presence::Running, "both last ran here");
        assert!(mine.has_arrived_in(phase) && !mine.has_arrived_in(phase + 1));
    }
}
