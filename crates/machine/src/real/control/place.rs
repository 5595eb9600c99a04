//! A place in which a thread is found, and those who act on it.
//!
//! ```text
//! life        nobody (1 bit) | busy (1 bit) | how many act (30 bits)
//!
//! nobody + n → nobody, busy + n        a thread comes: others that would, do not; it writes `tid` and `process`
//! nobody, busy + n → n                 it is there
//! n → n + 1                            somebody begins to act; if nobody is there, he stops at that
//! n + 1 → n                            he is done; wakes the thread if it waits for him
//! n → nobody, busy + n                 the thread leaves, and waits until n is 0
//! nobody, busy → nobody                it has left
//! ```
//!
//! # Invariants
//!
//! 1. Who acts has seen that the thread is there, in one step with the count that the thread waits for. So the number is the thread's.
//! 2. Who acts does so in a deferred section: no handler stops him, so nobody waits for him for long.
//! 3. `signalled` is set from before a signal is sent until its handler has begun: at most one is under way. It is not set when a thread comes.
//!
//! # Orderings
//!
//! `life` is counted up with Acquire, which pairs with the Release of the thread that comes and has written its number; it is counted down with Release,
//! so that what is done to the thread is done before it goes on (Acquire of its wait). `signalled` is exchanged on both sides, with AcqRel: who finds
//! it set knows that the handler's exchange comes after his own, and so sees what he wrote before it.

use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::boxed::Box;
use std::sync::Arc;

use super::deferral::{self, arrived, set_current};
use super::priority;
use super::stack::SignalStack;
use crate::backend::{park, signal};
use crate::clock::Deadline;
use crate::control::{Interrupted, Preference, Refused};

/// The signal, once it is chosen.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

const NOBODY: u32 = 1 << 31;
const BUSY: u32 = 1 << 30;

pub(crate) struct Place {
    life: AtomicU32,
    process: AtomicI32,
    tid: AtomicI32,
    signalled: AtomicBool,
}

/// What the thread's handler finds.
pub(super) struct Record {
    pub(super) interrupted: Arc<dyn Interrupted>,
}

std::thread_local! {
    /// Leaves when the thread ends, if its guard was forgotten.
    static MEMBERSHIP: Membership =
        const { Membership { record: RefCell::new(None), stack: RefCell::new(None) } };
}

struct Membership {
    // Boxed, so that it has one address.
    record: RefCell<Option<Box<Record>>>,
    /// Kept from one place to the next.
    stack: RefCell<Option<SignalStack>>,
}

impl Membership {
    fn end(&self) {
        if let Some(record) = self.record.take() {
            record.leave();
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug)]
pub(crate) struct Allowed(());

impl Drop for Allowed {
    fn drop(&mut self) {
        // If it is being destroyed, that ends it.
        let _ = MEMBERSHIP.try_with(Membership::end);
    }
}

pub(crate) fn can_interrupt() -> Result<(), Refused> {
    let signal = signal::claim(handle, None).map_err(|why| match why {
        signal::Unclaimed::NoneFree { from, to } | signal::Unclaimed::NotRealTime { from, to } => {
            Refused::NoSignal { from, to }
        }
        signal::Unclaimed::Taken => Refused::NoSignal { from: 0, to: 0 },
        signal::Unclaimed::Other { call, errno } => Refused::Other { call, errno },
    })?;
    // Relaxed: a number; its handler was installed by this call or an earlier one, which a thread that interrupts has been told of.
    SIGNAL.store(signal, Ordering::Relaxed);
    Ok(())
}

extern "C" fn handle(_signal: libc::c_int) {
    signal::keeping_errno(arrived);
}

pub(crate) fn allow<I: Interrupted>(interrupted: Arc<I>) -> Result<Allowed, Refused> {
    MEMBERSHIP
        .try_with(|membership| {
            let mut place = membership.record.borrow_mut();
            if place.is_some() {
                return Err(Refused::Already);
            }
            let mut stack = membership.stack.borrow_mut();
            if stack.is_none() {
                *stack = Some(SignalStack::install()?);
            }
            let record = Box::new(Record { interrupted });
            // First: a signal that met nobody would be taken for one that is under way.
            set_current(Some(&record));
            if let Err(refused) = record.interrupted.place().0.come() {
                set_current(None);
                return Err(refused);
            }
            *place = Some(record);
            // Relaxed: see `can_interrupt`.
            let signal = SIGNAL.load(Ordering::Relaxed);
            if signal != 0 {
                signal::unblock(signal);
            }
            Ok(Allowed(()))
        })
        .unwrap_or(Err(Refused::Already))
}

impl Record {
    /// The signal has arrived.
    pub(super) fn received(&self) {
        // AcqRel: pairs with the exchange of who finds it set and does not send another (header).
        self.interrupted.place().0.signalled.swap(false, Ordering::AcqRel);
    }

    /// The calling thread is not controlled any more, and nobody is at it.
    fn leave(&self) {
        set_current(None);
        self.interrupted.place().0.go();
    }
}

impl Place {
    /// The calling thread is here from now on.
    fn come(&self) -> Result<(), Refused> {
        let free = |life: u32| (life & (NOBODY | BUSY) == NOBODY).then_some(life | BUSY);
        // Acquire: pairs with the Release of who has left. Relaxed on failure: nothing follows.
        let claimed = self.life.fetch_update(Ordering::Acquire, Ordering::Relaxed, free);
        claimed.map_err(|_| Refused::Already)?;
        // Relaxed, here and below: the last step publishes it, and those who act without seeing that do not look.
        // SAFETY: cannot fail.
        self.process.store(unsafe { libc::getpid() }, Ordering::Relaxed);
        // SAFETY: cannot fail.
        self.tid.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        self.signalled.store(false, Ordering::Relaxed);
        // Release: pairs with the Acquire of those who act.
        self.life.fetch_and(!(NOBODY | BUSY), Ordering::Release);
        Ok(())
    }

    fn go(&self) {
        let leaving = NOBODY | BUSY;
        // AcqRel: with those who count themselves up: they see that nobody is there, or the thread waits for them.
        let mut life = self.life.fetch_or(leaving, Ordering::AcqRel) | leaving;
        while life != leaving {
            park::wait(&self.life, life, Deadline::NEVER);
            // Acquire: pairs with the Release of those who are done.
            life = self.life.load(Ordering::Acquire);
        }
        // Release: pairs with the Acquire of the next one to come.
        self.life.fetch_and(!BUSY, Ordering::Release);
    }

    /// Does something to the thread that is here, if one is.
    fn act(&self, act: impl FnOnce(&Self) -> bool) -> bool {
        // Relaxed: a hint, that saves the rest.
        if self.life.load(Ordering::Relaxed) & NOBODY != 0 {
            return false;
        }
        deferral::defer();
        // Acquire: pairs with the Release of `come`; Invariant 1.
        let there = self.life.fetch_add(1, Ordering::Acquire) & NOBODY == 0;
        let done = there && act(self);
        // Release: pairs with the Acquire of `go`.
        if self.life.fetch_sub(1, Ordering::Release) == (NOBODY | BUSY) + 1 {
            park::wake(&raw const self.life, usize::MAX);
        }
        deferral::undefer();
        done
    }

    pub(crate) fn interrupt(&self) -> bool {
        self.act(|place| {
            // Relaxed: see `can_interrupt`.
            let signal = SIGNAL.load(Ordering::Relaxed);
            if signal == 0 {
                return false;
            }
            if deferral::interrupt_if_here(place) {
                return true;
            }
            // AcqRel: pairs with the handler's exchange (header).
            if place.signalled.swap(true, Ordering::AcqRel) {
                return true;
            }
            // Relaxed: `act` has acquired them.
            let (process, tid) =
                (place.process.load(Ordering::Relaxed), place.tid.load(Ordering::Relaxed));
            let sent = signal::send(signal, process, tid);
            if !sent {
                // Relaxed: nothing is under way.
                place.signalled.store(false, Ordering::Relaxed);
            }
            sent
        })
    }

    pub(crate) fn prefer(&self, preference: Preference) -> bool {
        // Relaxed: `act` has acquired it.
        self.act(|place| priority::set(place.tid.load(Ordering::Relaxed), preference).is_ok())
    }
}

impl Default for Place {
    fn default() -> Self {
        Self {
            life: AtomicU32::new(NOBODY),
            process: AtomicI32::new(0),
            tid: AtomicI32::new(0),
            signalled: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: hints.
        let nobody = self.life.load(Ordering::Relaxed) & NOBODY != 0;
        let tid = (!nobody).then(|| self.tid.load(Ordering::Relaxed));
        f.debug_struct("Place").field("tid", &tid).finish()
    }
}
