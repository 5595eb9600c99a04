//! The last refusal of switch records, so that not every thread asks the kernel in vain.
//!
//! Asking takes some 20 µs, and the check before the first ring some 200 µs, whether or not they
//! are refused. Each thread that registers asks. So a refusal of the whole process stands for a
//! while:
//!
//! | the refusal | its kind | it stands |
//! | --- | --- | --- |
//! | by policy, by a filter, for want of support | [`Kind::Lasting`] | for good |
//! | something has run out or is busy | [`Kind::Passing`] | for [`PAUSE`], see below |
//! | of this thread or this call only | [`Kind::Single`] | not at all |
//!
//! A passing refusal also ends when this process gives a ring back.
//!
//! Nothing waits for the lock, because a child of a fork may find it held by a thread that it does
//! not have. A thread that does not get it asks the kernel.

use crate::clock::Deadline;
use crate::presence::Refused;
use core::time::Duration;
use std::sync::RwLock;

/// For how long nothing is asked again after something has run out.
const PAUSE: Duration = Duration::from_millis(100);

static REFUSALS: Refusals = Refusals::new();

/// Asks by `ask`, unless a refusal stands; remembers a new one.
pub(in crate::presence) fn unless_refused<T>(
    ask: impl FnOnce() -> Result<T, Refused>,
) -> Result<T, Refused> {
    REFUSALS.unless_refused(Deadline::passed, ask)
}

/// This process has given a ring back: what had run out may be there again.
pub(in crate::presence) fn ring_given_back() {
    REFUSALS.forget_passing();
}

struct Refusals(RwLock<Option<Standing>>);

struct Standing {
    /// The reason.
    refused: Refused,
    /// [`Deadline::NEVER`] if it is for good.
    until: Deadline,
}

impl Refusals {
    const fn new() -> Self {
        Self(RwLock::new(None))
    }

    /// `passed` says whether a deadline is over.
    fn unless_refused<T>(
        &self,
        passed: impl FnOnce(Deadline) -> bool,
        ask: impl FnOnce() -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        if let Ok(standing) = self.0.try_read()
            && let Some(standing) = &*standing
            && !passed(standing.until)
        {
            return Err(standing.refused.clone());
        }
        ask().inspect_err(|refused| self.remember(refused))
    }

    fn remember(&self, refused: &Refused) {
        let until = match Kind::of(refused) {
            Kind::Lasting => Deadline::NEVER,
            Kind::Passing => Deadline::after(PAUSE),
            Kind::Single => return,
        };
        if let Ok(mut standing) = self.0.try_write() {
            *standing = Some(Standing { refused: refused.clone(), until });
        }
    }

    fn forget_passing(&self) {
        if let Ok(mut standing) = self.0.try_write()
            && standing.as_ref().is_some_and(|standing| standing.until != Deadline::NEVER)
        {
            *standing = None;
        }
    }
}

/// The consequence of a refusal for the next question.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// It will be refused as well.
    Lasting,
    /// It will be refused for as long as others hold what is wanted.
    Passing,
    /// Nothing.
    Single,
}

impl Kind {
    fn of(refused: &Refused) -> Self {
        match refused {
            Refused::MemoryLimit { .. }
            | Refused::Descriptors { .. }
            | Refused::Other { errno: libc::EBUSY | libc::ENOMEM | libc::EAGAIN, .. } => {
                Self::Passing
            }
            Refused::NoIndex | Refused::Declined | Refused::Other { .. } => Self::Single,
            _ => Self::Lasting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Refused = Refused::Other { call: "perf_event_open", errno: libc::EBUSY };
    const GONE: Refused = Refused::Other { call: "perf_event_open", errno: libc::ESRCH };
    const PARANOID: Refused = Refused::Paranoid { level: 4 };

    /// Asks while the deadline of a standing refusal, if there is one, is over or not. What the
    /// caller is told, and whether the kernel was asked.
    fn ask(refusals: &Refusals, over: bool, answer: Result<(), Refused>) -> (bool, bool) {
        let mut asked = false;
        let passed = |until| over && until != Deadline::NEVER;
        let told = refusals.unless_refused(passed, || {
            asked = true;
            answer
        });
        (told.is_ok(), asked)
    }

    #[test]
    fn what_ran_out_is_asked_for_again_after_a_while() {
        for refused in [
            BUSY,
            Refused::Other { call: "perf_event_open", errno: libc::ENOMEM },
            Refused::Descriptors { errno: libc::EMFILE },
            Refused::MemoryLimit { mlock_kb: 516, memlock_kb: 0 },
        ] {
            let refusals = Refusals::new();
            assert_eq!(ask(&refusals, false, Err(refused.clone())), (false, true), "{refused:?}");
            for _ in 0..3 {
                assert_eq!(ask(&refusals, false, Ok(())), (false, false), "it stands: {refused:?}");
            }
            assert_eq!(ask(&refusals, true, Err(refused)), (false, true), "its time is over");
            assert_eq!(ask(&refusals, false, Ok(())), (false, false), "refused anew");
            assert_eq!(ask(&refusals, true, Ok(())), (true, true));
        }
    }

    #[test]
    fn a_policy_is_not_asked_again() {
        let refusals = Refusals::new();
        assert_eq!(ask(&refusals, false, Err(PARANOID)), (false, true));
        assert_eq!(ask(&refusals, true, Ok(())), (false, false));
        refusals.forget_passing();
        assert_eq!(ask(&refusals, true, Ok(())), (false, false));
    }

    #[test]
    fn a_refusal_of_one_thread_says_nothing_of_others() {
        for refused in [GONE, Refused::NoIndex, Refused::Declined] {
            let refusals = Refusals::new();
            assert_eq!(ask(&refusals, false, Err(refused)), (false, true));
            assert_eq!(ask(&refusals, false, Ok(())), (true, true));
        }
    }

    #[test]
    fn a_ring_that_is_given_back_ends_the_pause() {
        let refusals = Refusals::new();
        assert_eq!(ask(&refusals, false, Err(BUSY)), (false, true));
        refusals.forget_passing();
        assert_eq!(ask(&refusals, false, Ok(())), (true, true));
    }

    #[test]
    fn a_thread_that_finds_the_lock_held_asks() {
        let refusals = Refusals::new();
        assert_eq!(ask(&refusals, false, Err(BUSY)), (false, true));
        // As in a child that was forked while a thread of the parent wrote.
        let _held = refusals.0.write();
        assert_eq!(ask(&refusals, false, Err(BUSY)), (false, true));
    }
}
