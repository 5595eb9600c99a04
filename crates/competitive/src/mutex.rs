//! The mutex: one word that names its holder, and a policy that decides how long to spin before
//! sleeping.
//!
//! Why not the usual three-state futex word (free, held, held with sleepers): its release must find
//! out whether a thread sleeps. That takes a second locked instruction and doubles the price of an
//! uncontended lock. Here the word is only stored to, and sleepers are counted in a static table
//! that the releaser looks at ([`parking`](crate::parking)). The thread that goes to sleep pays the
//! price.
//!
//! | `word` | |
//! | --- | --- |
//! | 0 | free |
//! | a thread's number, and 1 | held by it |
//! | 2^32 - 1 | held by a thread without a number |
//!
//! # Invariants
//!
//! 1. `word` leaves 0 by the compare-exchange of a thread that wants the lock, or of a releaser on
//!    behalf of a sleeper. It becomes 0, or the number of a sleeper, only by its holder.
//! 2. A thread may find its own number in `word` while it waits. Then it has been handed the lock,
//!    or its policy took the lock when it was asked. The thread did not hold the lock when it came,
//!    and no other thread writes that number. Its position in the queue tells which of the two it
//!    was ([`Waiter::was_given_the_lock`]). Threads without a number are never handed anything.
//! 3. After the store that frees the lock, a release does not touch it: its memory may be gone.
//!
//! # Orderings
//!
//! The acquiring compare-exchange and looks that may find the lock handed over are Acquire. They
//! pair with the Release stores of `unlock` and of [`parking::hand_over`].
//! [`parking`](crate::parking) makes sure that a release and a sleeper do not miss each other.
//!
//! Source: Karlin, Li, Manasse and Owicki 1991, section 2.5, `P_Variable_Spin`. `lock_slow` is its
//! transcription. Their `releaseTime` is stamped by the releaser, in its slow path only.

use core::cell::Cell;
use core::fmt;

use lock_api::{GuardNoSend, RawMutex, RawMutexFair, RawMutexTimed};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::{self, Deadline, Instant};
use stanchion_machine::park;
use stanchion_machine::wait::{Spin, WaitPolicy, retry_closely, retry_for, retry_on};

use crate::cost;
use crate::owner::Owner;
use crate::parking::{self, Node, Slept, Waiter};
use crate::policy::{Adaptive, Contention, Policy, Wait};
use crate::turns::{Came, Turns};

/// A mutual exclusion lock with waiters that spin, then sleep, for as long as `P` decides.
///
/// - Uncontended: one compare-exchange to lock, one store and one load to unlock (where
///   [`membarrier`](stanchion_machine::asymmetric) is to be had).
/// - Order: none, a running thread may overtake sleepers. A release hands the lock to a thread that
///   has waited for 10 ms, at most every 5 ms, unless another thread is quicker.
/// - Size: 12 bytes and the policy's. With the policies of [`policy`](crate::policy) it is at most
///   16 in all.
/// - With more threads than processors it keeps working: waiters sleep.
/// - It has deadlines.
///
/// No poison: a panic in a section releases the lock. Guards stay with their thread, because the
/// lock knows its holder.
///
/// # Panics
///
/// Locking a mutex that the thread holds already panics, since it would wait for itself. With a
/// deadline it waits for that, and fails. A thread that has no
/// [`index`](stanchion_machine::thread::index) is not recognized, and waits for ever.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::LastThreeSamples};
///
/// let mutex = PolicyMutex::<_, LastThreeSamples>::new(vec![1]);
/// mutex.lock().push(2);
/// assert_eq!(*mutex.lock(), [1, 2]);
/// ```
pub struct RawPolicyMutex<P = Adaptive> {
    /// Free, or the holder. Written by the holder, and by the thread that becomes it.
    word: AtomicU32,
    /// The numbers of spinners (lower half) and sleepers (upper half), for policies. Counted by
    /// waiters.
    waiting: AtomicU32,
    /// The turns of the threads so far. Counted by the holder.
    turns: Turns,
    /// The policy. Adjusted by the holder.
    policy: P,
}

/// The mutex to use if you do not know which to use: waits are spun or slept through as the lock's
/// own history says.
///
/// ```
/// use stanchion_competitive::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
/// *TOTAL.lock() += 5;
/// let local = Mutex::new(5);
/// assert_eq!(*TOTAL.lock(), *local.lock());
/// ```
pub type Mutex<T> = lock_api::Mutex<RawPolicyMutex<Adaptive>, T>;

/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawPolicyMutex<Adaptive>, T>;

/// A guard of a part of what a [`Mutex`] protects.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawPolicyMutex<Adaptive>, T>;

/// A mutex with a policy of your choice, see [`policy`](crate::policy).
pub type PolicyMutex<T, P> = lock_api::Mutex<RawPolicyMutex<P>, T>;

/// The guard of a [`PolicyMutex`].
pub type PolicyMutexGuard<'a, T, P> = lock_api::MutexGuard<'a, RawPolicyMutex<P>, T>;

/// A guard of a part of what a [`PolicyMutex`] protects.
pub type MappedPolicyMutexGuard<'a, T, P> = lock_api::MappedMutexGuard<'a, RawPolicyMutex<P>, T>;

/// One spinner in `waiting`.
const SPINNER: u32 = 1;
const SLEEPER: u32 = 1 << 16;

/// A spinner is counted once it has waited for this part of C: counting takes the lock's line away
/// from its holder twice.
const UNCOUNTED: u64 = 2;

/// The questions of [`retry_closely`] in a brief wait: it ends after some 30 pause hints.
const BRIEF: u32 = 4;

/// The first pause of a waiter that stays away is this part of C, and it doubles up to C. So it
/// loses no more than a waiter that sleeps.
const FIRST_PAUSE: u64 = 2;

impl RawPolicyMutex {
    /// Returns a free lock with the default policy, [`Adaptive`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy(Adaptive::new())
    }
}

impl<P> RawPolicyMutex<P> {
    /// Returns a free lock with that policy.
    ///
    /// ```
    /// use stanchion_competitive::{PolicyMutex, RawPolicyMutex, policy::OptimalOnline};
    /// let raw = RawPolicyMutex::with_policy(OptimalOnline::with_threshold(700));
    /// let mutex = PolicyMutex::from_raw(raw, "data");
    /// assert_eq!(*mutex.lock(), "data");
    /// ```
    #[must_use]
    pub const fn with_policy(policy: P) -> Self {
        Self {
            word: AtomicU32::new(Owner::NOBODY),
            waiting: AtomicU32::new(0),
            turns: Turns::new(),
            policy,
        }
    }

    /// Returns the policy, with the state that it has learnt.
    #[must_use]
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    /// Returns whether a release of one looks at the threads that sleep on the other. For tests and
    /// measurements of what that costs.
    #[doc(hidden)]
    #[must_use]
    pub fn shares_bucket(&self, other: &Self) -> bool {
        parking::share_bucket(&self.word, &other.word)
    }

    /// The [`thread::index`](stanchion_machine::thread::index) of the holder; `None` if it is free,
    /// or its holder has none. A hint.
    #[must_use]
    pub fn holder(&self) -> Option<usize> {
        // Relaxed: out of date when it is returned.
        Owner::index_in(self.word.load(Ordering::Relaxed))
    }
}

impl<P: Policy> RawPolicyMutex<P> {
    #[inline]
    fn try_acquire(&self, me: Owner) -> bool {
        // Acquire: pairs with the Release of the last holder.
        self.word
            .compare_exchange(Owner::NOBODY, me.to_bits(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes the lock if it looks free.
    #[inline]
    fn try_when_free(&self, me: Owner) -> Option<()> {
        // Relaxed: only a hint to try.
        let free = self.word.load(Ordering::Relaxed) == Owner::NOBODY;
        (free && self.try_acquire(me)).then_some(())
    }

    /// Returns the state of the lock for the policy, at the beginning of a wait.
    #[inline]
    fn contention(&self) -> Contention {
        // Relaxed, here and below: hints.
        let others = self.waiting.load(Ordering::Relaxed);
        Contention {
            holder: Owner::index_in(self.word.load(Ordering::Relaxed)),
            spinners: others % SLEEPER,
            sleepers: others / SLEEPER,
            blocks: 0,
            cost: cost::current(),
        }
    }

    /// Waits for the lock; `false` if the deadline came first.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: Owner, deadline: Deadline) -> bool {
        // Relaxed: only this thread could have written its number (Invariant 2), before it came
        // here.
        if me.is(self.word.load(Ordering::Relaxed)) {
            return self.lock_again(deadline);
        }
        let came = self.turns.come();
        let contention = self.contention();
        let mut threshold = self.policy.threshold(&contention);
        if !P::TIMES_ALL_WAITS && came.looks_closely() && threshold > 0 {
            // Nothing else before these looks, and nothing after them: both would make the other
            // waiters wait.
            let mut questions = BRIEF;
            let again = || {
                questions -= 1;
                questions > 0 && !deadline.passed()
            };
            if retry_closely(|| self.try_when_free(me), again).is_some() {
                self.turns.count_after(came, false);
                return true;
            }
        }
        let mut arrival = Arrival::new(self, came, contention);
        let node = Node::new(&self.word, me, arrival.since);
        let mut waiter = Waiter::new(&node);
        loop {
            if self.spin(me, threshold, deadline, &mut arrival, &waiter) {
                break;
            }
            // Also after a wake-up: the deadline may have passed while the thread was on its way,
            // and it has looked once more.
            if deadline.passed() {
                return waiter.give_up();
            }
            arrival.count_as(SLEEPER);
            let slept = waiter.sleep(deadline);
            arrival.awake();
            match slept {
                Slept::Refused => {}
                Slept::Woken { at, mode } => arrival.woken(at, mode),
                Slept::TimedOut => return false,
            }
            threshold = self.policy.threshold(&arrival.contention);
        }
        waiter.acquired();
        self.turns.count_after(arrival.came, arrival.contention.blocks > 0);
        let wait = arrival.ended();
        let held = Held(self);
        self.policy.adjust(&wait);
        core::mem::forget(held);
        true
    }

    /// Spins for at most `threshold` nanoseconds; whether it got the lock.
    #[inline]
    fn spin(
        &self,
        me: Owner,
        threshold: u64,
        deadline: Deadline,
        arrival: &mut Arrival<'_>,
        waiter: &Waiter<'_>,
    ) -> bool {
        let holder = Cell::new(arrival.holder);
        let mut changes = 0;
        let attempt = || {
            // Acquire: if it finds the lock handed over, that pairs with the Release of the thread
            // that did.
            let word = self.word.load(Ordering::Acquire);
            if word == Owner::NOBODY {
                return self.try_acquire(me).then_some(Found::Free);
            }
            if word != holder.replace(word) {
                changes += 1;
            }
            me.is(word).then_some(Found::Mine)
        };
        let found = if threshold == u64::MAX {
            retry_on(&self.word, attempt, &mut Spin::start(), deadline)
        } else {
            let mut contention = arrival.contention;
            let began = arrival.until;
            // A clock that has begun anew, as after a suspend, is outside too.
            let time = began..began.plus_nanos(threshold);
            let brief = began..began.plus_nanos(contention.cost / UNCOUNTED);
            let again = || {
                let now = clock::now();
                if !brief.contains(&now) {
                    arrival.count_as(SPINNER);
                }
                contention.holder = Owner::index_in(holder.get());
                time.contains(&now) && !deadline.passed() && self.policy.keep_spinning(&contention)
            };
            // With brief looks a try is over by now.
            let tries = P::TIMES_ALL_WAITS && arrival.came.looks_closely();
            if tries || arrival.came.keeps_looking() {
                retry_closely(attempt, again)
            } else {
                let cost = arrival.contention.cost;
                retry_for(attempt, cost / FIRST_PAUSE..cost, again)
            }
        };
        arrival.spun(holder.get(), changes);
        match found {
            None => false,
            Some(Found::Free) => true,
            // Invariant 2.
            Some(Found::Mine) => waiter.was_given_the_lock() || self.lock_again(deadline),
        }
    }

    /// The thread holds the lock already.
    #[cold]
    fn lock_again(&self, deadline: Deadline) -> bool {
        if deadline == Deadline::NEVER {
            let name = self.policy.name();
            panic!(
                "this thread already holds the mutex {} (at {self:p}), or one that ended without releasing it had its number: waiting for it would never end",
                name.map_or(String::from("without a name"), |name| format!("`{name}`")),
            );
        }
        let word = AtomicU32::new(0);
        while park::wait(&word, 0, deadline) != park::Woken::TimedOut {}
        false
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<GuardNoSend> {
        self.lock_slow(Owner::me(), deadline).then(GuardNoSend::new)
    }
}

/// The state of the lock, as a waiter that spins no more found it.
enum Found {
    /// Free, and has taken it.
    Free,
    /// Held by its own thread.
    Mine,
}

/// Releases the lock if the policy panics.
struct Held<'a, P: Policy>(&'a RawPolicyMutex<P>);

impl<P: Policy> Drop for Held<'_, P> {
    fn drop(&mut self) {
        // SAFETY: the thread has just got the lock, and goes on unwinding.
        unsafe { self.0.unlock(GuardNoSend::new()) };
    }
}

/// One thread's wait for a lock, from its first failure on.
struct Arrival<'l> {
    /// The counts of the lock's waiters.
    waiting: &'l AtomicU32,
    /// The thread's part in those counts: 0 at first, then [`SPINNER`] or [`SLEEPER`].
    counted: Cell<u32>,
    /// The beginning of the wait.
    since: clock::Ticks,
    /// Until when the wait is accounted for.
    until: clock::Ticks,
    /// The time spun, in nanoseconds.
    spun: u64,
    /// The time blocked, each time until the release, in nanoseconds.
    blocked: u64,
    /// The time from the last release to running again, in nanoseconds, if it blocked.
    wake_latency: Option<u64>,
    /// The holder that was seen last.
    holder: u32,
    /// The number of times that the holder was seen to change.
    holder_changes: u32,
    /// The turns of the threads when it began.
    came: Came,
    /// The waiters when it began.
    others: u32,
    /// The state of the lock, for the policy.
    contention: Contention,
}

impl<'l> Arrival<'l> {
    fn new<P>(lock: &'l RawPolicyMutex<P>, came: Came, contention: Contention) -> Self {
        let now = clock::now();
        // Relaxed: a hint.
        let holder = lock.word.load(Ordering::Relaxed);
        Self {
            waiting: &lock.waiting,
            counted: Cell::new(0),
            since: now,
            until: now,
            spun: 0,
            blocked: 0,
            wake_latency: None,
            holder,
            holder_changes: 0,
            came,
            others: contention.spinners + contention.sleepers,
            contention,
        }
    }

    fn spun(&mut self, holder: u32, changes: u32) {
        let now = clock::now();
        self.spun += now.nanos_since(self.until);
        self.until = now;
        self.holder = holder;
        self.holder_changes += changes;
    }

    /// Counts it as that from now on; returns what else was counted.
    fn count_as(&self, kind: u32) -> u32 {
        let before = self.counted.replace(kind);
        if before == kind {
            return self.waiting.load(Ordering::Relaxed).wrapping_sub(kind);
        }
        let all = self.waiting.fetch_add(kind.wrapping_sub(before), Ordering::Relaxed);
        all.wrapping_sub(before)
    }

    /// It has slept, and tries again.
    fn awake(&mut self) {
        let others = self.count_as(SPINNER);
        self.contention.spinners = others % SLEEPER;
        self.contention.sleepers = others / SLEEPER;
    }

    /// It was woken by a release at that moment.
    fn woken(&mut self, released_at: clock::Ticks, mode: Option<cost::Mode>) {
        let now = clock::now();
        // The paper's MAX(0, releaseTime - now): a release before it went to sleep was not waited
        // for.
        self.blocked += released_at.nanos_since(self.until);
        // Of a thread that was still on its way to sleep when the lock was released, nothing is
        // learnt about waking up.
        if let Some(mode) = mode {
            let latency = now.nanos_since(released_at);
            cost::observe(latency, mode);
            self.wake_latency = Some(latency);
        }
        self.until = now;
        self.contention.blocks += 1;
        self.contention.cost = cost::current();
    }

    fn ended(&self) -> Wait {
        Wait {
            length: self.spun + self.blocked,
            spun: self.spun,
            blocks: self.contention.blocks,
            wake_latency: self.wake_latency,
            others: self.others,
            holder_changes: self.holder_changes,
            cost: self.contention.cost,
        }
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let counted = self.counted.get();
        if counted != 0 {
            self.waiting.fetch_sub(counted, Ordering::Relaxed);
        }
    }
}

// SAFETY: by Invariant 1 the lock has one holder at a time, and the orderings make one holder's
// writes visible to the next.
unsafe impl<P: Policy> RawMutex for RawPolicyMutex<P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_policy(P::INIT);

    /// Not `Send`: the word names the thread that holds it.
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        let me = Owner::me();
        if self.try_acquire(me) {
            self.turns.count();
        } else {
            // Without a deadline it returns only with the lock.
            self.lock_slow(me, Deadline::NEVER);
        }
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.try_acquire(Owner::me()).then(|| {
            self.turns.count();
            GuardNoSend::new()
        })
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        let word: *const AtomicU32 = &self.word;
        // Release: pairs with the Acquire of the next holder.
        self.word.store(Owner::NOBODY, Ordering::Release);
        // Invariant 3.
        parking::released(word);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        self.word.load(Ordering::Relaxed) != Owner::NOBODY
    }
}

// SAFETY: `hand_over` releases the lock, or makes a waiter its holder.
unsafe impl<P: Policy> RawMutexFair for RawPolicyMutex<P> {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        parking::hand_over(&self.word);
    }
}

// SAFETY: `lock_until` yields a guard only for an acquired lock.
unsafe impl<P: Policy> RawMutexTimed for RawPolicyMutex<P> {
    type Duration = core::time::Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Self::Duration) -> Option<GuardNoSend> {
        // The clock is read only by a thread that has to wait.
        self.try_lock().or_else(|| self.lock_until(Deadline::after(timeout)))
    }

    #[inline]
    fn try_lock_until(&self, instant: Self::Instant) -> Option<GuardNoSend> {
        self.try_lock().or_else(|| self.lock_until(Deadline::at(instant)))
    }
}

impl<P: Policy> Default for RawPolicyMutex<P> {
    fn default() -> Self {
        Self::INIT
    }
}

impl<P: Policy> fmt::Debug for RawPolicyMutex<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPolicyMutex").field("holder", &self.holder()).finish_non_exhaustive()
    }
}
