//! A condition variable for any mutex. Its waiters are in a queue: first come, first woken.
//!
//! Why not a word that each signal changes, with a futex on it: there, a thread that begins to wait
//! after a signal could be woken instead of a thread that waited before the signal. Here a signal
//! takes the first thread out of the queue and wakes that thread.
//!
//! Its bytes hold:
//!
//! - 0: the lock of the queue. It is 0 if free, else the generation of the process of the holder.
//! - 4: the number of threads that use the variable.
//! - 8: the first node of the queue.
//! - 16: the last node of the queue.
//! - 24: the clock of timed waits.
//! - 28: the generation of the process that the queue belongs to.
//! - 36: 0 if the variable is not shared between processes, see [`layout`](super::layout).
//!
//! All zeros are a variable without waiters and with the clock of the day, as in the C library.
//!
//! # Invariants
//!
//! 1. The queue is touched under its lock only. Its nodes are on the stacks of waiting threads.
//!    Such a thread does not return before its node is out of the queue.
//! 2. A node is in the queue until it is `WOKEN`, or its own thread has taken it out.
//! 3. A thread is counted in `users` as long as it may touch the variable. This holds for wakers
//!    too. `destroy` waits until all have left. So the variable may be destroyed as soon as all
//!    waiters have been woken.
//! 4. A waker does not touch a node once the node is `WOKEN`. It wakes the thread by the address of
//!    the word.
//! 5. The queue and `users` are valid only if the queue belongs to this process: if it has this
//!    process's [`generation`].
//!
//! # Fork
//!
//! Threads of the parent that wait, use a variable or hold a queue's lock do not exist in the
//! child. The child also uses the memory of their stacks again. The state that these threads left
//! in a variable has another generation. A wait takes a lock that they held, and empties a queue
//! that they were in ([`Queue::adopt`]). A signal or `destroy` finds that no thread of this process
//! waits. So the child needs nothing that a thread of its parent held, and nothing has to be
//! repaired at the fork.
//!
//! # Cancellation
//!
//! A thread that waits here is not woken by `pthread_cancel`.
//!
//! # Orderings
//!
//! - `state` is stored with Release and loaded with Acquire, although the mutex already orders the
//!   program's writes.
//! - The lock of the queue orders the queue.
//! - `users` is decremented with Release, which pairs with the Acquire of `destroy`. A signal looks
//!   at it Relaxed, and needs no handshake: a wait counts itself with the program's mutex held, and
//!   the program then decides under that mutex to signal.
//! - `generation` is stored with Release after `users`, and loaded with Acquire before `users`.

use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;

use libc::{clockid_t, pthread_condattr_t};
use stanchion_competitive::waits::current::Kind;
use stanchion_competitive::waits::shared::Shared;
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::fork::generation;
use stanchion_machine::park;
use stanchion_machine::wait::{Patient, WaitPolicy as _, retry_on, wait_until};

use super::current::{self, Place};
use super::deadline::Moment;
use super::layout::{SHARED, is_shared};
use super::until::Until;
use super::unwind::Registers;
use super::{Cond, Mutex, Site, dispatch, locks, real};

/// The queue, in the memory of the program's condition variable.
#[repr(C)]
struct Queue {
    /// 0, or the generation of the process of the holder.
    lock: AtomicU32,
    /// The number of threads that may touch the variable (Invariant 3).
    users: AtomicU32,
    /// The node that is woken next, or null. Written under the lock.
    first: Cell<*const Node>,
    /// The node that came last, or null. Written under the lock.
    last: Cell<*const Node>,
    /// The clock of timed waits. Only `init` writes it.
    clock: Cell<clockid_t>,
    /// The generation of the process that the queue belongs to (Invariant 5). Written under the
    /// lock.
    generation: AtomicU32,
}

/// The value of `lock` while no thread holds it.
const FREE: u32 = 0;

/// The `state` of a node in the queue.
const WAITING: u32 = 0;
/// The `state` of a node that a waker has taken out.
const WOKEN: u32 = 1;

/// A waiter, on the stack of its thread.
struct Node {
    /// `WAITING`, then `WOKEN`. The waker writes it.
    state: AtomicU32,
    /// The node that came next, or null. Written under the queue's lock.
    next: Cell<*const Node>,
}

impl Queue {
    /// Returns the queue in a condition variable.
    ///
    /// # Safety
    ///
    /// It must be a condition variable that is not shared, and outlive `'a`.
    unsafe fn of<'a>(cond: Cond) -> &'a Self {
        const { assert!(size_of::<Queue>() <= SHARED) };
        // SAFETY: the caller's promise; zeros are a queue, and it is aligned to 8.
        unsafe { &*cond.cast::<Self>() }
    }

    /// Returns whether a thread of this process has waited on the variable since it was made. If
    /// none has, no thread waits.
    fn is_adopted(&self) -> bool {
        // Acquire: pairs with the Release of `adopt`.
        self.generation.load(Ordering::Acquire) == generation()
    }

    /// Makes the queue belong to this process: forgets the state that threads of a parent left in
    /// it.
    fn adopt(&self) {
        if self.is_adopted() {
            return;
        }
        self.with(|| {
            // Relaxed: stored under the lock, which this thread holds.
            if self.generation.load(Ordering::Relaxed) != generation() {
                self.first.set(ptr::null());
                self.last.set(ptr::null());
                self.users.store(0, Ordering::Relaxed);
                // Release: pairs with the Acquire of `is_adopted`; shows `users`.
                self.generation.store(generation(), Ordering::Release);
            }
        });
    }

    /// Runs `body` under the lock.
    fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        let mine = generation();
        let attempt = || {
            // Relaxed: a look before the exchange.
            let holder = self.lock.load(Ordering::Relaxed);
            // If a thread of a parent holds the lock, it does so in the parent only. Here the lock
            // is free. Acquire: pairs with the Release below.
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
        // Relaxed: the program's mutex orders it (see the header).
        self.is_adopted() && self.users.load(Ordering::Relaxed) != 0
    }

    /// Runs `body` and keeps the variable from being destroyed meanwhile (Invariant 3). The queue
    /// must be adopted.
    fn used<R>(&self, body: impl FnOnce() -> R) -> R {
        // Relaxed: until here the program keeps the variable.
        self.users.fetch_add(1, Ordering::Relaxed);
        let result = body();
        // Release: pairs with the Acquire of `destroy`. The variable is not touched from here on.
        self.users.fetch_sub(1, Ordering::Release);
        result
    }

    /// Puts a node at the end of the queue. The lock must be held.
    fn push(&self, node: &Node) {
        // SAFETY: a node in the queue is alive (Invariant 1).
        match unsafe { self.last.get().as_ref() } {
            Some(last) => last.next.set(node),
            None => self.first.set(node),
        }
        self.last.set(node);
    }

    /// Takes the first node out of the queue and returns the word on which its thread sleeps. The
    /// lock must be held.
    fn pop(&self) -> Option<*const AtomicU32> {
        // SAFETY: as above.
        let first = unsafe { self.first.get().as_ref() }?;
        self.first.set(first.next.get());
        if first.next.get().is_null() {
            self.last.set(ptr::null());
        }
        let state = &raw const first.state;
        // Release: pairs with the Acquire of the waiter. Invariant 4: the node is not touched after
        // it.
        first.state.store(WOKEN, Ordering::Release);
        Some(state)
    }

    /// Takes a node out of the queue, wherever it is. The lock must be held.
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

/// Releases the mutex, waits for a signal, and locks the mutex again.
pub(super) unsafe fn wait(
    table: &Shared,
    cond: Cond,
    mutex: Mutex,
    site: Site,
    until: Until,
) -> c_int {
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
        let released = unsafe { dispatch::unlock(mutex) };
        if released == 0 {
            let name = locks::condition(site, table);
            let (kind, address, since) = (Kind::Condition, cond.addr(), current::now());
            let place = Place { kind, address, name, since };
            (released, !current::during(table, &place, || sleep(queue, &node, moment)))
        } else {
            // The caller does not hold the mutex: do not wait.
            give_up(queue, &node);
            (released, false)
        }
    });
    if released != 0 {
        return released;
    }
    // SAFETY: the caller's promise.
    let locked = unsafe { dispatch::lock(mutex, Registers::of_code(site), Until::Ever) };
    match (locked, timed_out) {
        (0, true) => libc::ETIMEDOUT,
        (result, _) => result,
    }
}

/// Sleeps until the node is woken. Returns `false` if the moment came first.
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
            // The waker may still hold the queue's lock, but the node is out of the queue.
            return true;
        }
    }
}

/// Takes the node out of the queue, if it is still there. Returns whether it was.
fn give_up(queue: &Queue, node: &Node) -> bool {
    queue.with(|| {
        // Relaxed: stored under the lock, which this thread holds.
        let waiting = node.state.load(Ordering::Relaxed) == WAITING;
        if waiting {
            queue.remove(node);
        }
        waiting
    })
}

/// Waits for a while: the C library's condition variable cannot wait with a replaced mutex. The
/// thread comes back without a signal, as POSIX allows.
unsafe fn wait_shared(mutex: Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { dispatch::unlock(mutex) };
    let word = AtomicU32::new(0);
    let soon = Deadline::after(core::time::Duration::from_millis(1));
    while park::wait(&word, 0, soon) != park::Woken::TimedOut {}
    // SAFETY: the caller's promise.
    unsafe { dispatch::lock(mutex, Registers::of_code(site), Until::Ever) }
}

/// Wakes the thread that has waited longest.
pub(super) unsafe fn signal(cond: Cond) -> c_int {
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

/// Wakes all threads that wait.
pub(super) unsafe fn broadcast(cond: Cond) -> c_int {
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
    // Only the threads that wait now. Threads that come meanwhile are not woken.
    queue.used(|| {
        queue.with(|| {
            while let Some(state) = queue.pop() {
                park::wake_at(state, 1);
            }
        });
    });
    0
}

/// Makes a condition variable.
pub(super) unsafe fn init(cond: Cond, attributes: *const pthread_condattr_t) -> c_int {
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

/// Waits until no thread uses the condition variable any more.
pub(super) unsafe fn destroy(cond: Cond) -> c_int {
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
