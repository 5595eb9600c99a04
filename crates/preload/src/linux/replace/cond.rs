//! A condition variable, for any mutex: a queue of the threads that wait, first come, first woken.
//!
//! Why not a word that each signal changes, and a futex on it: a thread that begins to wait after a
//! signal could then be woken in the place of one that waited before it. Here a signal takes the
//! first thread out of the queue and wakes that one.
//!
//! | bytes | |
//! | --- | --- |
//! | 0 | lock of the queue: 0 if free, else the generation of the process whose thread holds it |
//! | 4 | how many threads use the variable |
//! | 8 | first of the queue |
//! | 16 | last |
//! | 24 | the clock of its timed waits |
//! | 28 | the generation of the process that the queue belongs to |
//! | 36 | 0: not shared between processes, see [`super`] |
//!
//! All zeros are a variable that no thread waits for, whose clock is that of the day; as in the C
//! library.
//!
//! # Invariants
//!
//! 1. The queue is touched under its lock only. Its nodes lie on the stacks of threads that do not
//!    return before they are out of it.
//! 2. A node is in the queue until it is `WOKEN`, or its own thread has taken it out.
//! 3. A thread is counted in `users` as long as it may touch the variable, its wakers too, and
//!    `destroy` waits until all have left. So the variable may be destroyed as soon as all waiters
//!    have been woken.
//! 4. A waker does not touch a node once it is `WOKEN`; it wakes by address.
//! 5. The queue and `users` mean something only if the queue belongs to this process: if it has this
//!    process's [`generation`].
//!
//! # Fork
//!
//! A child has none of the threads that wait in its parent, use a variable or hold a queue's lock,
//! and it uses their stacks again. What they left in a variable has another generation: a wait
//! takes a lock that they held, and empties a queue that they were in ([`Queue::adopt`]). A signal
//! or `destroy` finds that no thread of this process waits. So the child needs nothing that a thread
//! of its parent held, and nothing has to be repaired at the fork.
//!
//! # Cancellation
//!
//! A thread that waits here is not woken by `pthread_cancel`.
//!
//! # Orderings
//!
//! `state` is stored with Release and loaded with Acquire, though the mutex orders what the program
//! wrote. The queue is ordered by its lock. `users` goes down with Release, which pairs with the
//! Acquire of `destroy`. `generation` is stored with Release after `users`, and loaded with Acquire
//! before `users` is.

use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;

use libc::{clockid_t, pthread_condattr_t};
use machine::atomic::{AtomicU32, Ordering};
use machine::clock::Deadline;
use machine::fork::generation;
use machine::park;
use machine::wait::{Patient, WaitPolicy as _, retry_on, wait_until};

use super::deadline::Moment;
use super::is_shared;
use crate::linux::interpose::{self, Until};
use crate::linux::{Cond, Mutex, Site, real};

#[repr(C)]
struct Queue {
    /// 0, or the generation of the process whose thread holds the lock.
    lock: AtomicU32,
    /// How many threads may touch the variable (Invariant 3).
    users: AtomicU32,
    first: Cell<*const Node>,
    last: Cell<*const Node>,
    /// Written by `init` only.
    clock: Cell<clockid_t>,
    /// The process that the queue belongs to (Invariant 5). Written under the lock.
    generation: AtomicU32,
}

const FREE: u32 = 0;

const WAITING: u32 = 0;
const WOKEN: u32 = 1;

struct Node {
    /// `WAITING`, then `WOKEN`: written by the waker.
    state: AtomicU32,
    /// The thread that came next.
    next: Cell<*const Node>,
}

impl Queue {
    /// # Safety
    ///
    /// It must be a condition variable that is not shared, and outlive `'a`.
    unsafe fn of<'a>(cond: Cond) -> &'a Self {
        const { assert!(size_of::<Queue>() <= super::SHARED) };
        // SAFETY: the caller's promise; zeros are a queue, and it is aligned to 8.
        unsafe { &*cond.cast::<Self>() }
    }

    /// Returns whether a thread of this process has waited on the variable since it was made. If
    /// none has, no thread waits.
    fn is_adopted(&self) -> bool {
        // Acquire: pairs with the Release of `adopt`.
        self.generation.load(Ordering::Acquire) == generation()
    }

    /// Makes the queue this process's: forgets what threads of a parent left in it.
    fn adopt(&self) {
        if self.is_adopted() {
            return;
        }
        self.with(|| {
            // Relaxed: stored under the lock that is held here.
            if self.generation.load(Ordering::Relaxed) != generation() {
                self.first.set(ptr::null());
                self.last.set(ptr::null());
                self.users.store(0, Ordering::Relaxed);
                // Release: pairs with the Acquire of `is_adopted`; shows `users`.
                self.generation.store(generation(), Ordering::Release);
            }
        });
    }

    fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        let mine = generation();
        let attempt = || {
            // Relaxed: a look before the exchange.
            let holder = self.lock.load(Ordering::Relaxed);
            // If a thread of a parent holds the lock, it does so in the parent: here it is free.
            // Acquire: pairs with the Release below.
            let take = || {
                self.lock.compare_exchange(holder, mine, Ordering::Acquire, Ordering::Relaxed).ok()
            };
            if holder == mine { None } else { take() }
        };
        if attempt().is_none() {
            retry_on(&self.lock, attempt, &mut <Patient>::start(), Deadline::NEVER);
        }
        let result = body();
        // Release: pairs with the Acquire of the next holder.
        self.lock.store(FREE, Ordering::Release);
        result
    }

    /// Returns whether any thread waits, as far as a waker can know.
    fn is_used(&self) -> bool {
        // Relaxed: a thread that began to wait before a signal held the mutex under which the
        // program decided to send it.
        self.is_adopted() && self.users.load(Ordering::Relaxed) != 0
    }

    /// Keeps the variable from being destroyed meanwhile (Invariant 3). It must be adopted.
    fn used<R>(&self, body: impl FnOnce() -> R) -> R {
        // Relaxed: the program keeps it until here.
        self.users.fetch_add(1, Ordering::Relaxed);
        let result = body();
        // Release: pairs with the Acquire of `destroy`. The variable is not touched from here on.
        self.users.fetch_sub(1, Ordering::Release);
        result
    }

    /// Puts a node at the end. The lock must be held.
    fn push(&self, node: &Node) {
        // SAFETY: a node in the queue is alive (Invariant 1).
        match unsafe { self.last.get().as_ref() } {
            Some(last) => last.next.set(node),
            None => self.first.set(node),
        }
        self.last.set(node);
    }

    /// Takes the first node out of the queue and returns the word that its thread sleeps on. The
    /// lock must be held.
    fn pop(&self) -> Option<*const AtomicU32> {
        // SAFETY: as above.
        let first = unsafe { self.first.get().as_ref() }?;
        self.first.set(first.next.get());
        if first.next.get().is_null() {
            self.last.set(ptr::null());
        }
        let state = &raw const first.state;
        // Release: pairs with the Acquire of its thread. Invariant 4.
        first.state.store(WOKEN, Ordering::Release);
        Some(state)
    }

    /// Takes a node out, wherever it is. The lock must be held.
    fn remove(&self, node: &Node) {
        let mut before: Option<&Node> = None;
        let mut at = self.first.get();
        // SAFETY: as above.
        while let Some(here) = unsafe { at.as_ref() } {
            at = here.next.get();
            if ptr::eq(here, node) {
                match before {
                    Some(before) => before.next.set(at),
                    None => self.first.set(at),
                }
                if at.is_null() {
                    self.last.set(before.map_or(ptr::null(), ptr::from_ref));
                }
                return;
            }
            before = Some(here);
        }
    }
}

/// Waits for a signal, without the mutex.
pub(in crate::linux) unsafe fn wait(cond: Cond, mutex: Mutex, site: Site, until: Until) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { is_shared(cond) } {
        // SAFETY: the caller's promise.
        return unsafe { wait_shared(mutex, site) };
    }
    // SAFETY: the caller's promise; Invariant 3.
    let queue = unsafe { Queue::of(cond) };
    let moment = match until {
        Until::Ever => Ok(None),
        // SAFETY: the caller's promise.
        Until::Time(until) => unsafe { Moment::new(queue.clock.get(), until) }.map(Some),
        // SAFETY: the caller's promise.
        Until::Clock(clock, until) => unsafe { Moment::new(clock, until) }.map(Some),
    };
    let moment = match moment {
        Ok(moment) => moment,
        Err(wrong) => return wrong,
    };
    queue.adopt();
    let node = Node { state: AtomicU32::new(WAITING), next: Cell::new(ptr::null()) };
    let (released, timed_out) = queue.used(|| {
        queue.with(|| queue.push(&node));
        // SAFETY: the caller's promise.
        let released = unsafe { interpose::unlock(mutex) };
        if released == 0 {
            (released, !sleep(queue, &node, moment))
        } else {
            // Not the caller's mutex: nothing was waited for.
            give_up(queue, &node);
            (released, false)
        }
    });
    if released != 0 {
        return released;
    }
    // SAFETY: the caller's promise.
    let locked = unsafe { interpose::lock(mutex, site, Until::Ever) };
    match (locked, timed_out) {
        (0, true) => libc::ETIMEDOUT,
        (result, _) => result,
    }
}

/// Sleeps until the node is woken; returns `false` if the moment came first.
fn sleep(queue: &Queue, node: &Node, moment: Option<Moment>) -> bool {
    loop {
        let left = match moment.map(Moment::remaining) {
            None => None,
            Some(Some(left)) => Some(left),
            Some(None) => return !give_up(queue, node),
        };
        let deadline = left.map_or(Deadline::NEVER, Deadline::after);
        // Acquire: pairs with the Release of `pop`.
        while node.state.load(Ordering::Acquire) == WAITING {
            if park::wait(&node.state, WAITING, deadline) == park::Woken::TimedOut {
                break;
            }
        }
        // Acquire: as above.
        if node.state.load(Ordering::Acquire) == WOKEN {
            // Its waker may still hold the queue's lock; the node is out of it.
            return true;
        }
    }
}

/// Takes the node out of the queue, if it is still there; returns whether it was.
fn give_up(queue: &Queue, node: &Node) -> bool {
    queue.with(|| {
        // Relaxed: stored under the lock that is held here.
        let waiting = node.state.load(Ordering::Relaxed) == WAITING;
        if waiting {
            queue.remove(node);
        }
        waiting
    })
}

/// Waits for a while: a condition variable of the C library's cannot wait with a mutex of ours. The
/// thread comes back without a signal, as POSIX allows.
unsafe fn wait_shared(mutex: Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { interpose::unlock(mutex) };
    let word = AtomicU32::new(0);
    let soon = Deadline::after(core::time::Duration::from_millis(1));
    while park::wait(&word, 0, soon) != park::Woken::TimedOut {}
    // SAFETY: the caller's promise.
    unsafe { interpose::lock(mutex, site, Until::Ever) }
}

pub(in crate::linux) unsafe fn signal(cond: Cond) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { is_shared(cond) } {
        // SAFETY: the caller's promise.
        return unsafe { real::cond_signal(cond) };
    }
    // SAFETY: the caller's promise.
    let queue = unsafe { Queue::of(cond) };
    if !queue.is_used() {
        return 0;
    }
    let state = queue.used(|| queue.with(|| queue.pop()));
    if let Some(state) = state {
        park::wake_at(state, 1);
    }
    0
}

pub(in crate::linux) unsafe fn broadcast(cond: Cond) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { is_shared(cond) } {
        // SAFETY: the caller's promise.
        return unsafe { real::cond_broadcast(cond) };
    }
    // SAFETY: the caller's promise.
    let queue = unsafe { Queue::of(cond) };
    if !queue.is_used() {
        return 0;
    }
    // The threads that wait now, not those that come meanwhile.
    queue.used(|| {
        queue.with(|| {
            while let Some(state) = queue.pop() {
                park::wake_at(state, 1);
            }
        });
    });
    0
}

pub(in crate::linux) unsafe fn init(cond: Cond, attributes: *const pthread_condattr_t) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { real::cond_init(cond, attributes) };
    // SAFETY: the caller's promise.
    if result != 0 || unsafe { is_shared(cond) } {
        return result;
    }
    let mut clock = libc::CLOCK_REALTIME;
    if !attributes.is_null() {
        // SAFETY: the caller's promise.
        unsafe { libc::pthread_condattr_getclock(attributes, &mut clock) };
    }
    // SAFETY: the caller's promise.
    unsafe { cond.write_bytes(0, 1) };
    // SAFETY: the caller's promise.
    unsafe { Queue::of(cond) }.clock.set(clock);
    0
}

pub(in crate::linux) unsafe fn destroy(cond: Cond) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { is_shared(cond) } {
        // SAFETY: the caller's promise.
        return unsafe { real::cond_destroy(cond) };
    }
    // SAFETY: the caller's promise.
    let queue = unsafe { Queue::of(cond) };
    if !queue.is_adopted() {
        return 0;
    }
    // Acquire: pairs with the Release of the threads that leave.
    wait_until(&queue.users, Ordering::Acquire, |users| users == 0, &mut <Patient>::start());
    0
}
