//! The lock whose waiter fetches a preempted holder.
//!
//! The holder was preempted, and its processor has been given to somebody else: everybody waits until it comes to its turn there, for 12 ms to 22 ms
//! of a pinned thread. A waiter that *sees* it ([`machine::presence`]) has a processor that is good for nothing else meanwhile. So it brings the
//! holder there ([`presence::pull`]), yields to it until the section is over, sends the holder home, and has the lock.
//!
//! Why not only ask not to be preempted ([`PreemptionSafe`](crate::PreemptionSafe)): that prevents, where somebody honours it, and for a bounded
//! time; this repairs, after the fact and without a scheduler's help, for a system call and a switch each time. Why the lock goes to the one that
//! pulled: the holder's affinity must be given back before it can leave, so its release is a hand-over, and the one who knows when it is complete is
//! the puller.
//!
//! | `owner` | meaning | left by |
//! | --- | --- | --- |
//! | 0 | free | any thread, by exchanging in its number |
//! | `n` | held by thread `n - 1` | the holder, by exchanging in 0; a waiter, by adding `PULLED` |
//! | `n`, `PULLED` | held; one waiter pulls, and will be the next holder | the holder, by adding `DONE` |
//! | `n`, `PULLED`, `DONE` | between two holders | the puller, by storing its number |
//!
//! # Invariants
//!
//! 1. The thread whose number is in `owner` holds the lock. It is put there by the exchange that found 0, or by the puller when it found `DONE`.
//! 2. Only one waiter adds `PULLED` to a holder's number. It ends its pull before it takes the number away.
//! 3. A holder that finds `PULLED` stays in `unlock` until its number is gone. So while it is being pulled it neither ends nor comes to use its
//!    affinity, which is what [`presence::pull`] asks for. The guard stays with its thread for the same reason.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | take: exchange 0 for a number | Acquire | the Release exchange of `unlock` |
//! | pull: add `PULLED` | Relaxed | nobody: it publishes nothing |
//! | hand over: store `DONE` | Release | the puller's Acquire look |
//! | the puller's number | Relaxed | nobody: its holder-to-be has acquired already |
//!
//! Source: the recovery of Black 1990 and of Anderson, Bershad, Lazowska and Levy 1992, section 3.3, as Michael and Scott 1997 describe them in
//! section 2.

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardNoSend, RawMutex};
use machine::atomic::{AtomicU32, Ordering};
use machine::presence::{self, Presence};
use machine::thread;
use machine::wait::{self, Patient, WaitPolicy, wait_until};

use crate::bomb;
use crate::contention::Delayed;

/// The owner of a lock that nobody holds.
const FREE: u32 = 0;
/// A thread without an index: nobody can see where it is.
const NAMELESS: u32 = 1 << 29;
/// A waiter pulls the holder.
const PULLED: u32 = 1 << 30;
/// The pulled holder is through.
const DONE: u32 = 1 << 31;

/// A test-and-set lock whose waiters bring a preempted holder to their own processor; otherwise they poll with backoff, and pass the time as `W`
/// says.
///
/// | | |
/// | --- | --- |
/// | bypass bound | none: a waiter may be overtaken for ever |
/// | cache misses to acquire | 1 uncontended |
/// | size | 4 bytes |
/// | more threads than processors | a holder that was preempted elsewhere comes back after a system call and a switch |
/// | deadline | no: a waiter that pulls a holder cannot give up |
///
/// Only threads that are [registered](machine::presence::register) with switch records can be seen, and so pulled; for others this is a test-and-set
/// lock. It pays for threads that are pinned. A thread that may run anywhere is often fetched by the system as soon as a processor falls idle. A
/// critical section must not change its thread's affinity, nor outlast its thread in a thread-local's destructor.
///
/// Its waits allocate nothing and open no file. To bring a holder takes a few system calls about affinity. What allocates, opens a perf event and
/// checks it by two threads is the registration, which is the caller's to make.
///
/// ```
/// use stanchion_spin::RecoveringMutex;
///
/// static HITS: RecoveringMutex<u32> = RecoveringMutex::new(0);
/// // Whoever is to be fetched must be seen.
/// let _seen = machine::presence::register();
/// *HITS.lock() += 1;
/// assert_eq!(*HITS.lock(), 1);
/// ```
///
/// The guard stays with its thread, which is the one that is fetched:
///
/// ```compile_fail,E0277
/// static HITS: stanchion_spin::RecoveringMutex<u32> = stanchion_spin::RecoveringMutex::new(0);
/// let guard = HITS.lock();
/// std::thread::spawn(move || drop(guard));
/// ```
pub struct Recovering<W = Patient> {
    owner: AtomicU32,
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Recovering: RecoveringMutex, RecoveringMutexGuard;
    Recovering<W>: PolicyRecoveringMutex, PolicyRecoveringMutexGuard, [W];
}

/// How puller and pulled wait for one another, on one processor: each lets the other run at once, and sleeps if that does not help.
///
/// Why not a futex: the two take turns, and a yield is the cheaper switch.
type Yielding = Patient<0>;

/// What ends a wait.
enum Found {
    Acquired,
    /// The holder of that number has been preempted.
    Stopped(u32),
}

/// The calling thread's number.
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

    #[inline]
    fn try_acquire(&self, me: u32) -> bool {
        // Acquire: pairs with the Release exchange of `unlock`.
        self.owner.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self, me: u32) {
        // A policy must not unwind out of here: it might do so with the lock just taken, or with a holder pulled.
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

    /// One look, and a try if the lock reads free.
    fn look(&self, me: u32) -> Option<Found> {
        // Relaxed: only a hint to try, or to look where the holder is; the exchanges decide.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == FREE {
            return self.try_acquire(me).then_some(Found::Acquired);
        }
        let seen = owner < NAMELESS && presence::of(owner as usize - 1) == Presence::Preempted;
        seen.then_some(Found::Stopped(owner))
    }

    /// Brings the holder here, waits until it is through, and takes the lock over. `false` if it is not the holder any more, or is being pulled
    /// already.
    fn fetch(&self, holder: u32, me: u32) -> bool {
        let pulled = holder | PULLED;
        // Relaxed: publishes nothing; that the holder stays is Invariant 3.
        let mine =
            self.owner.compare_exchange(holder, pulled, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() {
            return false;
        }
        let here = presence::pull(holder as usize - 1);
        // Yielding, not spinning: the holder is to run here. Acquire: pairs with the Release store of `hand_over`.
        let done = |owner| owner == pulled | DONE;
        wait_until(&self.owner, Ordering::Acquire, done, &mut Yielding::start());
        // Before the holder's number goes: Invariant 2.
        drop(here);
        // Relaxed: the look above has acquired.
        self.owner.store(me, Ordering::Relaxed);
        true
    }

    /// The release of a holder that is being pulled.
    #[cold]
    fn hand_over(&self, me: u32) {
        let done = me | PULLED | DONE;
        // Release: pairs with the puller's Acquire look.
        self.owner.store(done, Ordering::Release);
        // The puller needs this processor. Relaxed: only that the pull is over; nothing is touched after it.
        wait_until(&self.owner, Ordering::Relaxed, |owner| owner != done, &mut Yielding::start());
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once, and the orderings make one holder's writes visible to the next.
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
        // Relaxed: our own number, to which a waiter may have added `PULLED`; the exchange finds out.
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
