//! Waits, as a parking lot tells of them: by the address that a thread waits for.
//!
//! The address says which lock it is, because the thread has told before which lock it is about to
//! block for. The wait of a condition variable is known by the mutex that it releases.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::local::{self, Awaited, Held, Local};
use crate::mode::Wanted;
use crate::totals::{self, Target};
use crate::{identity, recorder, switch};

/// The bit that tells the second address of a read-write lock from its first.
const SECOND: usize = 1;

/// A step of a wait for a condition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The thread is in no such wait.
    None,
    /// The wait calls the function of its caller that may release a mutex.
    FallingAsleep,
    /// The wait has released a mutex, and the thread has not acquired it again.
    Released,
}

thread_local! {
    /// The step of the thread. It is apart from the other state, because each acquisition and each
    /// release looks at it.
    static STEP: Cell<Step> = const { Cell::new(Step::None) };
}

/// A wait of the calling thread that goes on.
///
/// It costs one relaxed load while the recorder is off. Else it costs two readings of the clock,
/// and a call path if it is the first wait for its lock.
///
/// ```
/// use stanchion_order::Wait;
///
/// let word = 0_u32;
/// let wait = Wait::begin(std::ptr::from_ref(&word).addr());
/// wait.sleeping(|| {
///     // A condition variable releases its mutex here.
/// });
/// // Here the thread sleeps.
/// wait.end(true);
/// ```
#[derive(Debug)]
#[must_use = "the wait is counted by `end`"]
pub struct Wait {
    /// The time at which it began, if the recorder is on.
    began: Option<Instant>,
    /// The address that the thread waits for.
    address: usize,
}

impl Wait {
    /// Tells that the thread is about to wait for an address: that of a lock, of a condition, or of
    /// another word. Never panics.
    ///
    /// ```
    /// use stanchion_order::Wait;
    ///
    /// Wait::begin(0x1000).end(false);
    /// ```
    #[inline]
    pub fn begin(address: usize) -> Self {
        let began = if switch::is_off() { None } else { begin(address) };
        Self { began, address }
    }

    /// Runs `act`, which may release a mutex before the thread sleeps. [`mutex_released`] then says
    /// which. Costs nothing else, and never panics itself.
    ///
    /// ```
    /// # use stanchion_order::Wait;
    /// let wait = Wait::begin(0x1000);
    /// assert_eq!(wait.sleeping(|| 1), 1);
    /// wait.end(true);
    /// ```
    #[inline]
    pub fn sleeping<R>(&self, act: impl FnOnce() -> R) -> R {
        if self.began.is_none() {
            return act();
        }
        /// Goes back to the step before, unless `act` has released a mutex. Also if it panics.
        struct Before(Step);

        impl Drop for Before {
            fn drop(&mut self) {
                if STEP.get() == Step::FallingAsleep {
                    STEP.set(self.0);
                }
            }
        }

        // A thread that takes its mutex again after a condition may sleep for that: it stays
        // `Released`.
        let _before = Before(STEP.replace(Step::FallingAsleep));
        act()
    }

    /// Tells that the wait is over. `slept` is false if the thread did not wait after all: then
    /// nothing is counted. Never panics.
    ///
    /// If the wait has released a mutex, the thread is about to block for it again.
    ///
    /// ```
    /// # use stanchion_order::{Wait, WaitClass, report, switch_on};
    /// switch_on();
    /// let wait = Wait::begin(0x1000);
    /// wait.end(true);
    /// let report = report();
    /// assert_eq!((report.waits[0].class, report.waits[0].count), (WaitClass::Other, 1));
    /// ```
    #[inline]
    pub fn end(mut self, slept: bool) {
        // In the child of a fork the totals may be locked forever.
        if let Some(began) = self.began.take()
            && switch::is_known_on()
        {
            let length = began.elapsed();
            local::enter(|local| {
                local.wait_for(0);
                if slept {
                    end(local, self.address, length);
                }
            });
        }
    }
}

/// Tells that the wait is over, as [`end`](Wait::end) does for a thread that did not wait: its
/// function has panicked.
impl Drop for Wait {
    #[inline]
    fn drop(&mut self) {
        if self.began.is_some() {
            give_up();
        }
    }
}

/// Notes that the thread waits no more.
#[cold]
#[inline(never)]
fn give_up() {
    if switch::is_known_on() {
        local::enter(|local| local.wait_for(0));
    }
}

/// Notes that the thread waits for an address. Returns the time, if the recorder is on.
#[cold]
#[inline(never)]
fn begin(address: usize) -> Option<Instant> {
    if !identity::is_on() {
        return None;
    }
    local::enter(|local| local.wait_for(address));
    // The clock is read last: the note is no part of the wait.
    Some(Instant::now())
}

/// Counts a wait, and notes that its mutex is about to be taken again.
#[cold]
fn end(local: &Local, address: usize, length: Duration) {
    // A wait for the mutex itself takes it again after the wait for the condition.
    let is_of_another = |held: &Held| held.address != address & !SECOND;
    let released = local.released.get().filter(is_of_another);
    let (target, own) = target(local, released, address);
    let lock = own.and_then(|held| recorder::lock(held.number));
    totals::count(target, lock, address, length);
    if totals::is_long(length) {
        // A lock that is upgraded is held meanwhile, and no other one for that.
        let is_other = |held: &Held| own.is_none_or(|own| own.number != held.number);
        for held in local.held().filter(is_other) {
            if let Some(of) = recorder::lock(held.number) {
                let wait = (target, lock, address, length);
                totals::count_across(wait, (of, held.mode, held.place));
            }
        }
    }
    if let Some(lock) = released {
        local.await_lock(Awaited { lock, is_condition: false });
        local.publish_awaited();
        let news = recorder::acquiring(local, lock.entry, Wanted::New(lock.mode), lock.place);
        news.iter().for_each(identity::append);
    }
}

/// Returns what the thread has waited for, and the lock that belongs to it.
fn target(local: &Local, released: Option<Held>, address: usize) -> (Target, Option<Held>) {
    let is_its = |held: &Held| held.address == address & !SECOND;
    if let Some(held) = released {
        return (Target::Condition(held.number, address), Some(held));
    }
    let awaited = local.awaited();
    // A lock that is upgraded is held meanwhile.
    let lock = awaited.map(|awaited| awaited.lock).filter(is_its);
    if let Some(held) = lock.or_else(|| local.held().find(is_its)) {
        return (Target::Lock(held.number), Some(held));
    }
    match awaited {
        Some(Awaited { lock, is_condition: true }) => {
            (Target::Condition(lock.number, address), Some(lock))
        }
        _ => (Target::Other(address), None),
    }
}

/// Tells that the thread releases the mutex at this address, past its wrapper. It counts within
/// [`Wait::sleeping`] only: there the wait of a condition variable does so.
///
/// Costs a relaxed load while the recorder is off, and some nanoseconds else. Never panics.
///
/// ```
/// // A mutex that no thread is known to hold.
/// stanchion_order::mutex_released(0x1000);
/// ```
#[inline]
pub fn mutex_released(address: usize) {
    if !switch::is_off() && switch::is_known_on() && STEP.get() == Step::FallingAsleep {
        note_released(address);
    }
}

/// Notes that the wait of the thread has released a mutex, if that is recorded.
#[cold]
#[inline(never)]
fn note_released(address: usize) {
    local::enter(|local| {
        if let Some(lock) = local.remove(|held| held.address == address) {
            STEP.set(Step::Released);
            local.released.set(Some(lock));
            local.await_lock(Awaited { lock, is_condition: true });
            local.publish_awaited();
        }
    });
}

/// Tells that the thread has acquired the mutex at this address, past its wrapper. It counts only
/// if the wait of a condition variable has released the mutex before.
///
/// Costs as [`mutex_released`] does. Never panics.
///
/// ```
/// // A mutex that no wait has released.
/// stanchion_order::mutex_acquired(0x1000);
/// ```
#[inline]
pub fn mutex_acquired(address: usize) {
    if !switch::is_off() && switch::is_known_on() && STEP.get() == Step::Released {
        note_acquired(address);
    }
}

/// Notes that the thread has acquired the mutex again that its wait has released.
#[cold]
#[inline(never)]
fn note_acquired(address: usize) {
    local::enter(|local| {
        if let Some(held) = local.released.get().filter(|held| held.address == address) {
            STEP.set(Step::None);
            local.released.set(None);
            recorder::acquired(local, held);
        }
    });
}
