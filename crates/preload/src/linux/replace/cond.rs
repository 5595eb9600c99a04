//! A condition variable, for any mutex: a queue of those who wait, first come, first woken.
//!
//! Why not a word that each signal changes, and a futex on it: a thread that begins to wait after a signal may then be woken in the place of one that
//! waited before it. Here a signal takes the first of the queue and wakes that one.
//!
//! | bytes | |
//! | --- | --- |
//! | 0 | lock of the queue |
//! | 4 | how many threads have to do with it |
//! | 8 | first of the queue |
//! | 16 | last |
//! | 24 | the clock of its timed waits |
//! | 28 | how many forks there had been when it was last used |
//! | 36 | 0: not shared between processes, see [`super`] |
//!
//! All zeros are one that nobody waits for, whose clock is that of the day; as in the C library.
//!
//! # Invariants
//!
//! 1. The queue is touched under its lock only, and its nodes lie on the stacks of threads that do not return before they are out of it.
//! 2. A node is in the queue until it is `WOKEN`, or its own thread has taken it out.
//! 3. A thread is counted in `users` as long as it may touch the variable, its wakers too, and `destroy` waits for all to leave: so the variable may
//!    be destroyed as soon as all have been woken.
//! 4. A waker does not touch a node once it is `WOKEN`; it wakes by address.
//!
//! In the child of a fork those who waited are no more, and their stacks are used again: the queue is forgotten at the first use there
//! ([`Queue::renew`]).
//!
//! A thread that waits here is not woken by `pthread_cancel`.
//!
//! # Orderings
//!
//! `state` is stored with Release and loaded with Acquire, though the mutex orders what the program wrote. The queue is ordered by its lock. `users`
//! goes down with Release, which pairs with the Acquire of `destroy`.

use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;

use libc::{clockid_t, pthread_condattr_t};
use lock_api::RawMutex as _;
use machine::atomic::{AtomicU32, Ordering};
use machine::clock::Deadline;
use machine::park;
use machine::wait::{Patient, WaitPolicy as _, wait_until};
use stanchion_spin::TestAndSet;

use super::deadline::Moment;
use super::is_shared;
use crate::linux::interpose::{self, Until};
use crate::linux::{Cond, Mutex, Site, real};

#[repr(C)]
struct Queue {
    lock: TestAndSet,
    users: AtomicU32,
    first: Cell<*const Node>,
    last: Cell<*const Node>,
    clock: Cell<clockid_t>,
    forks: AtomicU32,
}

/// How many times this process has been forked off.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// In the child of a fork.
pub(super) fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

const WAITING: u32 = 0;
const WOKEN: u32 = 1;

struct Node {
    state: AtomicU32,
    next: Cell<*const Node>,
}

impl Queue {
    /// # Safety
    ///
    /// It must be a condition variable that is not shared, and outlive `'a`.
    unsafe fn of<'a>(cond: Cond) -> &'a Self {
        const { assert!(size_of::<Queue>() <= super::SHARED) };
        // SAFETY: the caller's promise; zeros are a queue, and it is aligned to 8.
        let queue = unsafe { &*cond.cast::<Self>() };
        // Relaxed: the forks of this process were before its first thread's second.
        let forks = FORKS.load(Ordering::Relaxed);
        if queue.forks.load(Ordering::Relaxed) != forks {
            queue.renew(forks);
        }
        queue
    }

    #[cold]
    fn renew(&self, forks: u32) {
        self.with(|| {
            // Relaxed: under the lock.
            if self.forks.load(Ordering::Relaxed) != forks {
                self.first.set(ptr::null());
                self.last.set(ptr::null());
                self.users.store(0, Ordering::Relaxed);
                self.forks.store(forks, Ordering::Relaxed);
            }
        });
    }

    fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        let guard = self.lock.lock();
        let result = body();
        // SAFETY: locked above.
        unsafe { self.lock.unlock(guard) };
        result
    }

    /// Whether anybody waits, as far as a waker can know.
    fn is_used(&self) -> bool {
        // Relaxed: who began to wait before a signal held the mutex under which the program decided to send it.
        self.users.load(Ordering::Relaxed) != 0
    }

    /// Keeps the variable from being destroyed meanwhile (Invariant 3).
    fn used<R>(&self, body: impl FnOnce() -> R) -> R {
        // Relaxed: the program keeps it until here.
        self.users.fetch_add(1, Ordering::Relaxed);
        let result = body();
        // Release: pairs with the Acquire of `destroy`. The variable is not touched from here on.
        self.users.fetch_sub(1, Ordering::Release);
        result
    }

    fn push(&self, node: &Node) {
        // SAFETY: a node in the queue is alive (Invariant 1).
        match unsafe { self.last.get().as_ref() } {
            Some(last) => last.next.set(node),
            None => self.first.set(node),
        }
        self.last.set(node);
    }

    /// Takes the first out of the queue; says which word its thread sleeps on.
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

/// Until it is woken; `false` if the moment came first.
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

/// Takes the node out of the queue, if it is still there; says whether it was.
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

/// A condition variable of the C library's cannot wait with a mutex of ours. So the thread comes back after a while without a signal, as it may.
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
    // Those who are there now, not those who come meanwhile.
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
    // Acquire: pairs with the Release of who leaves.
    wait_until(&queue.users, Ordering::Acquire, |users| users == 0, &mut <Patient>::start());
    0
}
