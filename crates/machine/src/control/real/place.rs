//! A place in which a thread is found, and the threads that act on it.
//!
//! ```text
//! life    generation (32 bits) | empty (1 bit) | busy (1 bit) | count of actors (30 bits)
//!
//! empty + n → empty, busy + n      a thread comes; no other can; it writes `tid`, `process`
//! empty, busy + n → n              the thread is there
//! n → n + 1                        an actor begins; if the place is empty, it stops at that
//! n + 1 → n                        the actor is done; it wakes the thread if that waits
//! n → empty, busy + n              the thread leaves, and waits until n is 0
//! empty, busy → empty              the thread has left
//! ```
//!
//! # Fork
//!
//! A child has a copy of the place, and not the thread. So `life` carries the number of the process
//! in which it was written ([`generation`]). What was written in another process means "empty":
//! actors find no thread, and the next thread that comes begins with a new `life`. The thread that
//! forked is a thread without a place in the child, also if it was in one. Its old [`Allowed`] and
//! its old record end nothing that began in the child. The number is part of `life` and no word
//! beside it, because an old `life` has to be replaced in one step.
//!
//! # Invariants
//!
//! 1. An actor has seen that the thread is there in one step with the count that the thread waits
//!    for. So the number in `tid` is the thread's.
//! 2. An actor acts in a deferred section: no handler stops it, so the thread waits briefly.
//! 3. `signalled` is set from before a signal is sent until its handler has begun. So at most one
//!    is under way. It is not set when a thread comes.
//! 4. Only a `life` of this process is counted up: its generation does not change any more.
//!
//! # Orderings
//!
//! `life` is counted up with Acquire, which pairs with the Release of the thread that comes and has
//! written its number. It is counted down with Release, so that what is done to the thread is done
//! before it goes on (Acquire of its wait). `signalled` is exchanged on both sides, with AcqRel: an
//! actor that finds it set knows that the handler's exchange comes after its own, and so sees what
//! the actor wrote before it.

use core::cell::RefCell;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::boxed::Box;
use std::sync::Arc;

use super::deferral::{self, arrived, set_current};
use super::priority;
use super::record::Record;
use super::stack::SignalStack;
use crate::backend::park;
use crate::clock::Deadline;
use crate::control::{Interrupted, Preference, Refused, signal};
use crate::fork::generation;

/// The signal, once it is chosen.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

const EMPTY: u64 = 1 << 31;
const BUSY: u64 = 1 << 30;
const ACTORS: u64 = BUSY - 1;
/// The generation stands above the rest.
const GENERATION: u32 = 32;

pub(crate) struct Place {
    /// See the head of the file. The thread that is here and the actors write it.
    life: AtomicU64,
    /// Counts the actors that were the last, for a thread that waits for them. The actors write it.
    done: AtomicU32,
    /// The process of the thread that is here, which writes it.
    process: AtomicI32,
    /// The kernel's number of the thread that is here, which writes it.
    tid: AtomicI32,
    /// A signal is under way. The actors set it, the handler clears it.
    signalled: AtomicBool,
}

std::thread_local! {
    /// Leaves when the thread ends, if its guard was forgotten.
    static MEMBERSHIP: Membership =
        const { Membership { record: RefCell::new(None), stack: RefCell::new(None) } };
}

struct Membership {
    /// The thread's consent, if it is in a place. Boxed, so that it has one address.
    record: RefCell<Option<Box<Record>>>,
    /// The stack of the handler, kept from one place to the next.
    stack: RefCell<Option<SignalStack>>,
}

impl Membership {
    fn end(&self) {
        if let Some(record) = self.record.take() {
            leave(&record);
        }
    }

    /// Ends the membership that began in that process, and no later one.
    fn end_of(&self, generation: u32) {
        if self.record.borrow().as_ref().is_some_and(|record| record.generation == generation) {
            self.end();
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end();
    }
}

/// Holds the process in which the thread came.
#[derive(Debug)]
pub(crate) struct Allowed(u32);

impl Drop for Allowed {
    fn drop(&mut self) {
        // If it is being destroyed, that ends it.
        let _ = MEMBERSHIP.try_with(|membership| membership.end_of(self.0));
    }
}

pub(crate) fn can_interrupt() -> Result<(), Refused> {
    // SAFETY: the handler does only what a handler may, and nothing for a thread without a record.
    let claimed = unsafe { signal::claim(handle, None) };
    let signal = claimed.map_err(|why| match why {
        signal::Unclaimed::NoneFree { from, to } | signal::Unclaimed::NotRealTime { from, to } => {
            Refused::NoSignal { from, to }
        }
        signal::Unclaimed::Taken => Refused::NoSignal { from: 0, to: 0 },
        signal::Unclaimed::Other { call, errno } => Refused::Other { call, errno },
    })?;
    // Relaxed: a number. Its handler was installed by this call or an earlier one, and a thread
    // that interrupts comes after one of them.
    SIGNAL.store(signal, Ordering::Relaxed);
    Ok(())
}

pub(crate) fn still_interrupts() -> Result<(), Refused> {
    // Relaxed: see `can_interrupt`.
    match SIGNAL.load(Ordering::Relaxed) {
        signal if signal != 0 && !signal::has(handle, signal) => Err(Refused::Taken { signal }),
        _ => Ok(()),
    }
}

/// Holds the signal that the thread has blocked, if it has.
#[derive(Debug)]
pub(crate) struct Undisturbed(Option<i32>);

pub(crate) fn undisturbed() -> Undisturbed {
    // Relaxed: see `can_interrupt`.
    let signal = SIGNAL.load(Ordering::Relaxed);
    Undisturbed((signal != 0 && signal::block(signal)).then_some(signal))
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        if let Some(signal) = self.0 {
            signal::unblock(signal);
        }
    }
}

extern "C" fn handle(_signal: libc::c_int) {
    signal::keeping_errno(arrived);
}

pub(crate) fn allow<I: Interrupted>(interrupted: Arc<I>) -> Result<Allowed, Refused> {
    MEMBERSHIP
        .try_with(|membership| {
            let mut place = membership.record.borrow_mut();
            if place.as_deref().is_some_and(Record::is_of_this_process) {
                return Err(Refused::Already);
            }
            let mut stack = membership.stack.borrow_mut();
            if stack.is_none() {
                *stack = Some(SignalStack::install()?);
            }
            let generation = generation();
            let record = Box::new(Record { interrupted, generation });
            // First: a signal that finds no record would be taken for one that is under way.
            set_current(Some(&record));
            if let Err(refused) = record.interrupted.place().0.come() {
                set_current(None);
                return Err(refused);
            }
            let inherited = place.replace(record);
            // Its destructor may run the caller's code.
            drop((place, stack));
            drop(inherited);
            // Relaxed: see `can_interrupt`.
            let signal = SIGNAL.load(Ordering::Relaxed);
            if signal != 0 {
                signal::unblock(signal);
            }
            Ok(Allowed(generation))
        })
        .unwrap_or(Err(Refused::Already))
}

/// Ends the control of the calling thread; `record` is its own. No actor is at it afterwards.
fn leave(record: &Record) {
    set_current(None);
    if record.is_of_this_process() {
        record.interrupted.place().0.go();
    }
}

impl Place {
    /// Puts the calling thread here.
    fn come(&self) -> Result<(), Refused> {
        let free = |life: u64| {
            let life = in_this_process(life);
            (life & (EMPTY | BUSY) == EMPTY).then_some(life | BUSY)
        };
        // Acquire: pairs with the Release of the thread that left. Relaxed on failure: nothing
        // follows.
        let claimed = self.life.fetch_update(Ordering::Acquire, Ordering::Relaxed, free);
        claimed.map_err(|_| Refused::Already)?;
        // Relaxed, here and below: the last step publishes it, and an actor that does not see that
        // step does not look.
        // SAFETY: cannot fail.
        self.process.store(unsafe { libc::getpid() }, Ordering::Relaxed);
        // SAFETY: cannot fail.
        self.tid.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        self.signalled.store(false, Ordering::Relaxed);
        // Release: pairs with the Acquire of the actors.
        self.life.fetch_and(!(EMPTY | BUSY), Ordering::Release);
        Ok(())
    }

    /// Records that the signal has arrived.
    pub(super) fn received(&self) {
        // AcqRel: pairs with the exchange of an actor that finds it set and sends none (header).
        self.signalled.swap(false, Ordering::AcqRel);
    }

    /// Takes the calling thread away, and waits for the actors that are at it.
    fn go(&self) {
        let leaving = EMPTY | BUSY;
        // AcqRel: pairs with the count of an actor: it sees an empty place, or is waited for.
        let mut life = self.life.fetch_or(leaving, Ordering::AcqRel);
        while life & ACTORS != 0 {
            // Acquire: pairs with the Release of the last actor, which has left `life` before.
            let done = self.done.load(Ordering::Acquire);
            // Acquire: pairs with the Release of the actors that are done.
            life = self.life.load(Ordering::Acquire);
            if life & ACTORS != 0 {
                park::wait(&self.done, done, Deadline::NEVER);
            }
        }
        // Release: pairs with the Acquire of the next thread that comes.
        self.life.fetch_and(!BUSY, Ordering::Release);
    }

    /// Runs `act` while the thread that is here cannot leave, if one is here.
    fn act(&self, act: impl FnOnce(&Self) -> bool) -> bool {
        // Relaxed: a hint, that saves the rest; and the generation, which no longer changes once it
        // is this process's (Invariant 4).
        if in_this_process(self.life.load(Ordering::Relaxed)) & EMPTY != 0 {
            return false;
        }
        deferral::defer();
        // Acquire: pairs with the Release of `come`; Invariant 1.
        let there = self.life.fetch_add(1, Ordering::Acquire) & EMPTY == 0;
        let done = there && act(self);
        // Release: pairs with the Acquire of `go`.
        let before = self.life.fetch_sub(1, Ordering::Release);
        if before & BUSY != 0 && before & ACTORS == 1 {
            // Release: pairs with the Acquire of `go`, which finds `life` counted down.
            self.done.fetch_add(1, Ordering::Release);
            park::wake(&raw const self.done, usize::MAX);
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
            if deferral::interrupt_if(|record| {
                ptr::eq(&raw const record.interrupted.place().0, place)
            }) {
                return true;
            }
            if !signal::has(handle, signal) {
                // The program has taken it: its handler must not run for this, and the default
                // action would end the process. Relaxed: one that was under way has gone to that
                // handler.
                place.signalled.store(false, Ordering::Relaxed);
                return false;
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

/// Returns what `life` means in this process: what another process wrote there means "empty".
fn in_this_process(life: u64) -> u64 {
    let generation = u64::from(generation()) << GENERATION;
    if life >> GENERATION << GENERATION == generation { life } else { generation | EMPTY }
}

impl Default for Place {
    fn default() -> Self {
        Self {
            // No process has generation 0.
            life: AtomicU64::new(EMPTY),
            done: AtomicU32::new(0),
            process: AtomicI32::new(0),
            tid: AtomicI32::new(0),
            signalled: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: hints.
        let empty = in_this_process(self.life.load(Ordering::Relaxed)) & EMPTY != 0;
        let tid = (!empty).then(|| self.tid.load(Ordering::Relaxed));
        f.debug_struct("Place").field("tid", &tid).finish()
    }
}
