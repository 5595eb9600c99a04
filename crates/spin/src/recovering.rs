//! A test-and-set lock. A waiter fetches a preempted holder.
//!
//! If the holder is preempted, its processor runs another thread. All waiters wait until the holder
//! has its turn there, 12 ms to 22 ms for a pinned thread. A waiter that *sees* this
//! ([`stanchion_machine::presence`]) has a processor with no better use meanwhile. So it brings the
//! holder to that processor ([`presence::pull`]) and yields to it until the section is over. Then
//! it sends the holder home and has the lock.
//!
//! Why not only ask not to be preempted ([`PreemptionSafe`](crate::PreemptionSafe)): such a request
//! prevents the preemption, for a bounded time, and only if the scheduler honours it. This lock
//! repairs the preemption afterwards, without help from the scheduler. Each repair costs a system
//! call and a switch.
//!
//! Why the puller gets the lock next: the holder's affinity must be restored before the holder can
//! leave. So the holder's release is a hand-over, and the puller is the thread that knows when it
//! is complete.
//!
//! `owner` is one of these:
//!
//! - 0: free. Any thread leaves this state by exchanging in its number.
//! - `n`: held by thread `n - 1`. The holder leaves it by exchanging in 0, a waiter by adding
//!   `PULLED`.
//! - `n` with `PULLED`: held, and one waiter pulls. That waiter will be the next holder. The holder
//!   leaves it by adding `DONE`.
//! - `n` with `PULLED` and `DONE`: between two holders. The puller leaves it by storing its number.
//!
//! # Invariants
//!
//! 1. The thread that stored its number into `owner` holds the lock while that number is there
//!    without `DONE`. The number is stored by the exchange that found 0, or by the puller when it
//!    found `DONE`.
//! 2. Only one waiter adds `PULLED` to a holder's number. It ends its pull before it takes the
//!    number away.
//! 3. A holder that finds `PULLED` stays in `unlock` until its number is gone. So while it is being
//!    pulled, it neither ends nor uses its affinity. [`presence::pull`] asks for that. The guard
//!    stays with its thread for the same reason.
//!
//! # Orderings
//!
//! - Take, an exchange of 0 for a number: Acquire. It pairs with the Release exchange of `unlock`.
//! - Pull, adding `PULLED`: Relaxed. It has no partner, because it publishes nothing.
//! - Hand over, a store of `DONE`: Release. It pairs with the puller's Acquire load.
//! - The puller's store of its number: Relaxed. It has no partner, because the puller, the next
//!   holder, has acquired already.
//!
//! Source: the recovery of Black 1990 and of Anderson, Bershad, Lazowska and Levy 1992, section
//! 3.3, as Michael and Scott 1997 describe them in section 2.

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardNoSend, RawMutex};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::presence::{self, Presence};
use stanchion_machine::thread;
use stanchion_machine::wait::{self, Patient, WaitPolicy, wait_until};

use crate::bomb;
use crate::contention::Delayed;

/// The value of `owner` while the lock is free.
const FREE: u32 = 0;
/// The number of any thread without an index. Such a thread cannot be seen by waiters.
const NAMELESS: u32 = 1 << 29;
/// A flag in `owner`: a waiter pulls the holder.
const PULLED: u32 = 1 << 30;
/// A flag in `owner`: the pulled holder has left its critical section.
const DONE: u32 = 1 << 31;

/// A test-and-set lock with waiters that bring a preempted holder to their own processor. While the
/// holder runs, they poll with backoff. `W` is the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | none: a waiter may be overtaken for ever |
/// | cache misses to acquire | 1 uncontended |
/// | size | 4 bytes |
/// | more threads than processors | a preempted holder runs on the waiter's processor |
/// | deadline | no: a waiter that pulls a holder cannot give up |
///
/// To fetch a holder takes a system call and a switch.
///
/// Waiters see, and so pull, only threads that are
/// [registered](stanchion_machine::presence::register) with switch records. For other threads this
/// is a test-and-set lock. It pays for pinned threads: the system often fetches a thread that may
/// run anywhere as soon as a processor falls idle. A critical section must not change its thread's
/// affinity. It must not outlast its thread in a thread-local's destructor.
///
/// Its waits allocate nothing and open no file. To bring a holder takes a few system calls about
/// affinity. The registration allocates, opens a perf event, and checks it with two threads. It is
/// up to the caller to register.
///
/// ```
/// use stanchion_spin::RecoveringMutex;
///
/// static HITS: RecoveringMutex<u32> = RecoveringMutex::new(0);
/// // A thread must be registered to be seen and fetched.
/// let _seen = stanchion_machine::presence::register();
/// *HITS.lock() += 1;
/// assert_eq!(*HITS.lock(), 1);
/// ```
///
/// The guard stays with its thread, because that thread is fetched:
///
/// ```compile_fail,E0277
/// static HITS: stanchion_spin::RecoveringMutex<u32> = stanchion_spin::RecoveringMutex::new(0);
/// let guard = HITS.lock();
/// std::thread::spawn(move || drop(guard));
/// ```
pub struct Recovering<W = Patient> {
    /// The holder's number and the flags. The holder, a waiter that pulls, and the next holder
    /// write it.
    owner: AtomicU32,
    /// The waiting policy: `W` is a type parameter only, no value is stored.
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Recovering: RecoveringMutex, RecoveringMutexGuard;
    Recovering<W>: PolicyRecoveringMutex, PolicyRecoveringMutexGuard, [W];
}

/// The policy by which puller and holder wait for each other on one processor. Each lets the other
/// run at once, and sleeps if that does not help.
///
/// Why not a futex: the two take turns, and a yield is the cheaper switch.
type Yielding = Patient<0>;

/// The reason for the end of a wait.
enum Found {
    /// The waiter has taken the lock.
    Acquired,
    /// The holder with this number has been preempted.
    Stopped(u32),
}

/// Returns the calling thread's number.
#[inline]
fn number() -> u32 {
    // `as`: indices are below `thread::INDICES`, far below 2^29.
    thread::index().map_or(NAMELESS, |index| index as u32 + 1)
}

impl Recovering {
    /// Returns a free lock with the default waiting policy.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> Recovering<W> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `Recovering::<Spin>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self { owner: AtomicU32::new(FREE), waiting: PhantomData }
    }

    /// Tries once to take the lock for the thread with the number `me`.
    #[inline]
    fn try_acquire(&self, me: u32) -> bool {
        // Acquire: pairs with the Release exchange of `unlock`.
        self.owner.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits until this thread holds the lock.
    #[cold]
    fn lock_contended(&self, me: u32) {
        // A policy must not unwind out of here: the thread might have just taken the lock, or be
        // pulling a holder.
        let bomb = bomb::armed();
        let mut policy = Delayed::<W>::start();
        loop {
            match wait::retry_until(|| self.look(me), &mut policy) {
                Found::Acquired => break,
                Found::Stopped(holder) => {
                    if self.fetch(holder, me) {
                        break;
                    }
                }
            }
        }
        drop(policy);
        bomb.defuse();
    }

    /// Looks once: takes the lock if it is free, or finds that its holder has been preempted.
    fn look(&self, me: u32) -> Option<Found> {
        // Relaxed: only a hint to try, or to look for the holder. The exchanges decide.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == FREE {
            return self.try_acquire(me).then_some(Found::Acquired);
        }
        let seen = owner < NAMELESS && presence::of(owner as usize - 1) == Presence::Preempted;
        seen.then_some(Found::Stopped(owner))
    }

    /// Brings the holder to this processor, waits until it has left its section, and takes the lock
    /// over. Returns `false` if it does not hold the lock any more, or if another waiter pulls it
    /// already.
    fn fetch(&self, holder: u32, me: u32) -> bool {
        let pulled = holder | PULLED;
        // Relaxed: it publishes nothing. The holder stays because of Invariant 3.
        let mine =
            self.owner.compare_exchange(holder, pulled, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() {
            return false;
        }
        let here = presence::pull(holder as usize - 1);
        // Yielding, not spinning: the holder has to run on this processor. Acquire: pairs with the
        // Release store of `hand_over`.
        let done = |owner| owner == pulled | DONE;
        wait_until(&self.owner, Ordering::Acquire, done, &mut Yielding::start());
        // Before the store that takes the holder's number away: Invariant 2.
        drop(here);
        // Relaxed: the wait above has acquired.
        self.owner.store(me, Ordering::Relaxed);
        true
    }

    /// Releases the lock to the waiter that pulls the calling holder.
    #[cold]
    fn hand_over(&self, me: u32) {
        let done = me | PULLED | DONE;
        // Release: pairs with the puller's Acquire load.
        self.owner.store(done, Ordering::Release);
        // The puller needs this processor, so this wait yields. Relaxed: the value says only that
        // the pull is over. Nothing is touched after it.
        wait_until(&self.owner, Ordering::Relaxed, |owner| owner != done, &mut Yielding::start());
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<W: WaitPolicy> RawMutex for Recovering<W> {
    const INIT: Self = Self::with_policy();

    /// Not `Send`: Invariant 3.
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        let me = number();
        if !self.try_acquire(me) {
            self.lock_contended(me);
        }
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.try_acquire(number()).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // Relaxed: this thread's own number. A waiter may have added `PULLED` to it; the exchange
        // finds out.
        let owner = self.owner.load(Ordering::Relaxed) & !PULLED;
        // Release: pairs with the Acquire exchange of the next holder.
        let freed = self.owner.compare_exchange(owner, FREE, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.hand_over(owner);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        self.owner.load(Ordering::Relaxed) != FREE
    }
}

stateless_04!(Recovering<W>, GuardNoSend, [W: WaitPolicy]);

impl<W: WaitPolicy> Default for Recovering<W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> fmt::Debug for Recovering<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovering").field("locked", &self.is_locked()).finish()
    }
}
