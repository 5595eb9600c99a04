//! A thread that can be controlled, and those who do so.
//!
//! ```text
//! life        gone (1 bit) | how many act on the thread (31 bits)
//!
//! n → n + 1              somebody begins to act on it; if it has gone, he stops at that
//! n + 1 → n              he is done; wakes the thread if it waits for him
//! n → gone + n           the thread leaves, and waits until n is 0
//! ```
//!
//! # Invariants
//!
//! 1. Who acts has seen that the thread has not gone, in one step with the count that the thread waits for. So the number is the thread's.
//! 2. Who acts does so in a deferred section: no handler stops him, so nobody waits for him for long.
//! 3. `signalled` is set from before the signal is sent until its handler has begun: at most one is under way.
//!
//! # Orderings
//!
//! `life` is counted up with Acquire and down with Release, so that what is done to the thread is done before it goes on to end (Acquire of its wait).
//! `signalled` is exchanged on both sides, with AcqRel: who finds it set knows that the handler's exchange comes after his own, and so sees
//! what he wrote before it.

use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::Arc;

use super::deferral::{self, arrived, set_current};
use super::priority;
use super::stack::SignalStack;
use crate::backend::{park, signal};
use crate::clock::Deadline;
use crate::control::{Interrupted, Preference, Refused};

/// The signal, once it is chosen.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

const GONE: u32 = 1 << 31;

pub(super) struct Record {
    pub(super) interrupted: Arc<dyn Interrupted>,
    process: i32,
    tid: i32,
    life: AtomicU32,
    signalled: AtomicBool,
}

std::thread_local! {
    /// Leaves when the thread ends, if its guard was forgotten.
    static MEMBERSHIP: Membership = const { Membership(RefCell::new(None)) };
}

struct Membership(RefCell<Option<(Arc<Record>, SignalStack)>>);

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some((record, stack)) = self.0.take() {
            record.leave();
            stack.remove_at_end();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Allowed(Control);

impl Allowed {
    pub(crate) fn control(&self) -> Control {
        self.0.clone()
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        // If it is being destroyed, that leaves.
        let membership = MEMBERSHIP.try_with(|membership| membership.0.take()).ok().flatten();
        if let Some((record, stack)) = membership {
            record.leave();
            stack.remove();
        }
    }
}

#[derive(Clone)]
pub(crate) struct Control(Arc<Record>);

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
    // Relaxed: see `can_interrupt`.
    let signal = SIGNAL.load(Ordering::Relaxed);
    let record = Arc::new(Record {
        interrupted,
        // SAFETY: cannot fail.
        process: unsafe { libc::getpid() },
        // SAFETY: cannot fail.
        tid: unsafe { libc::gettid() },
        life: AtomicU32::new(0),
        signalled: AtomicBool::new(false),
    });
    MEMBERSHIP
        .try_with(|membership| {
            let mut place = membership.0.borrow_mut();
            if place.is_some() {
                return Err(Refused::Already);
            }
            let (held, _) = place.insert((Arc::clone(&record), SignalStack::install()?));
            set_current(Some(held));
            if signal != 0 {
                signal::unblock(signal);
            }
            Ok(Allowed(Control(record)))
        })
        .unwrap_or(Err(Refused::Already))
}

impl Record {
    /// The signal has arrived.
    pub(super) fn received(&self) {
        // AcqRel: pairs with the exchange of who finds it set and does not send another (header).
        self.signalled.swap(false, Ordering::AcqRel);
    }

    /// The calling thread is not controlled any more, and nobody is at it.
    fn leave(&self) {
        set_current(None);
        // AcqRel: with those who count themselves up: they see that it has gone, or it waits for them.
        let mut life = self.life.fetch_or(GONE, Ordering::AcqRel) | GONE;
        while life != GONE {
            park::wait(&self.life, life, Deadline::NEVER);
            // Acquire: pairs with the Release of those who are done.
            life = self.life.load(Ordering::Acquire);
        }
        priority::restore();
    }

    /// Does something to the thread, unless it has gone.
    fn act(&self, act: impl FnOnce(&Self) -> bool) -> bool {
        deferral::defer();
        // Acquire: with `leave`, Invariant 1.
        let there = self.life.fetch_add(1, Ordering::Acquire) & GONE == 0;
        let done = there && act(self);
        // Release: pairs with the Acquire of `leave`.
        if self.life.fetch_sub(1, Ordering::Release) == GONE + 1 {
            park::wake(&raw const self.life, usize::MAX);
        }
        deferral::undefer();
        done
    }
}

impl Control {
    pub(crate) fn interrupt(&self) -> bool {
        self.0.act(|record| {
            // Relaxed: see `can_interrupt`.
            let signal = SIGNAL.load(Ordering::Relaxed);
            if signal == 0 {
                return false;
            }
            // AcqRel: pairs with the handler's exchange (header).
            if record.signalled.swap(true, Ordering::AcqRel) {
                return true;
            }
            let sent = signal::send(signal, record.process, record.tid);
            if !sent {
                // Relaxed: nothing is under way.
                record.signalled.store(false, Ordering::Relaxed);
            }
            sent
        })
    }

    pub(crate) fn prefer(&self, preference: Preference) -> bool {
        self.0.act(|record| priority::set(record.tid, preference).is_ok())
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a hint.
        let gone = self.0.life.load(Ordering::Relaxed) & GONE != 0;
        f.debug_struct("Control").field("tid", &self.0.tid).field("gone", &gone).finish()
    }
}
