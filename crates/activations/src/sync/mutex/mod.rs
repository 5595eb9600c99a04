//! The mutex: one word that names the kernel thread its holder runs on, and a queue.
//!
//! Why not `stanchion_competitive`'s: its waiters sleep in the kernel, and take their processor
//! along. Why the number of the kernel thread and not of the user-level thread: waiters ask
//! whether the holder is on a processor, and on which, and the kernel knows only kernel threads.
//!
//! | `word` | meaning |
//! | --- | --- |
//! | `FREE` in the low half | no thread holds the lock |
//! | a number there | it is held on the kernel thread of this number |
//! | `NAMELESS` there | it is held on a kernel thread without a number |
//! | `ABSENT` there | it was given to a waiter that has not come for it yet |
//! | `QUEUED` | there are waiters in the queue |
//! | `AWAKE` | a release has woken a waiter, which has not looked yet |
//! | `FETCHED`, `DONE` | see `fetch.rs` |
//!
//! ```text
//!         lock                       give: fair, or after a time
//! FREE ─────────► number, NAMELESS ────────────────────────────────► ABSENT
//!   ▲                │        ▲                                         │
//!   └─── unlock ─────┘        └──────────── the waiter comes ───────────┘
//! ```
//!
//! # Invariants
//!
//! 1. The low half leaves `FREE` by the compare-exchange of a thread that wants the lock. A
//!    releaser may set it to `ABSENT` for a waiter. Only the holder makes it `FREE`. The waiter
//!    that the lock was given to changes `ABSENT` to its number.
//! 2. `QUEUED` is written under the queue's lock. It is set whenever that lock is free and the
//!    queue is not empty.
//! 3. A release that wakes a waiter sets `AWAKE`. That waiter clears it in the step in which it
//!    takes the lock, joins the queue again, or gives up. So a free lock with a queue has `AWAKE`:
//!    a release that finds a queue and not `AWAKE` wakes a waiter in the step that frees the lock.
//! 4. While `AWAKE` is set, no release wakes another waiter.
//!
//! # Fairness
//!
//! The queue is first come, first woken. A waiter that was woken in vain stands first again. A
//! running thread may take the lock before one that was woken. A release gives the lock to the
//! first in line, instead of freeing it, if no woken waiter is on its way and the first in line
//! came [`LONGEST_WAIT_NS`] ago or earlier. So a waiter is overtaken while it stands behind others
//! or is on its way. If it has looked in vain after that time, it stands first, and the next
//! release is for it, unless a waiter has fetched the holder and takes the lock over.
//!
//! # Orderings
//!
//! An exchange that takes the lock is Acquire, and one that releases it is Release. Every other
//! change of the word is a Relaxed read-modify-write, so a release is seen through it. A lock that
//! is given is seen by the queue's answer, which is Release and Acquire. A waiter and a release do
//! not miss each other, without a fence: both exchange the same word.
//!
//! Source: the flags are those of Go's mutex (2017). WebKit and `parking_lot` give the lock away
//! after a time. Recovery is from Anderson, Bershad, Lazowska and Levy 1992, section 3.3.

mod fetch;

use core::fmt;
use core::time::Duration;

use lock_api::{GuardNoSend, RawMutex as _, RawMutexFair, RawMutexTimed};
use stanchion_competitive::cost;
use stanchion_competitive::policy::{Adaptive, Contention, Policy, Wait};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::{self, Deadline, Instant, Ticks};
use stanchion_machine::presence::Presence;
use stanchion_machine::thread;
use stanchion_machine::wait::retry_for;

use super::queue::{Answer, Line, Queue, Waiter};
use crate::thread::handle::Thread;
use crate::worker::context;
use crate::worker::state::Worker;

const FREE: u32 = 0;
/// The lock is held on a kernel thread without a number.
const NAMELESS: u32 = 1 << 27;
/// Resume to a waiter that has not come for it.
const ABSENT: u32 = NAMELESS + 1;
/// The bits of the holder.
const HOLDER: u32 = (1 << 28) - 1;
const QUEUED: u32 = 1 << 28;
const AWAKE: u32 = 1 << 29;
const FETCHED: u32 = 1 << 30;
const DONE: u32 = 1 << 31;

const _: () = assert!(thread::INDICES < NAMELESS as usize);

/// The time after which the first in line is given the lock, in nanoseconds.
const LONGEST_WAIT_NS: u64 = 500_000;

/// The price of a park of a user-level thread and of making it ready, C of its waits, in
/// nanoseconds.
const USER_COST_NS: u64 = cost::MIN_NS;

/// The longest spin at a time, in nanoseconds, whatever the policy says: the holder may have
/// parked, and need this very processor.
const LONGEST_SPIN_NS: u64 = 1_000_000;

/// The first pause of a spinning waiter is this fraction of C; pauses double up to C.
const FIRST_PAUSE: u64 = 8;

/// A raw mutex for user-level and kernel threads. Its waiters spin for as long as the policy `P`
/// says, if the holder is on another processor, and then park.
///
/// - uncontended: one compare-exchange to lock, one to unlock.
/// - order: first come, first woken; a running thread may overtake. A release gives the lock to a
///   waiter that came 0.5 ms ago or earlier, unless a woken one is on its way.
/// - size: 32 bytes and the policy's.
/// - a preempted holder: is brought to the waiter's processor, for at most 0.2 ms, if its kernel
///   thread is [registered](stanchion_machine::presence::register), as those of a runtime are.
/// - deadline: yes.
///
/// There is no poison: a panic in a section releases the lock. A thread that locks a mutex which it
/// holds waits for ever.
///
/// Guards stay with their thread. A user-level thread may continue on another kernel thread; that
/// does no harm. Guards that are sent to another thread would leave in the lock the number of a
/// kernel thread that has nothing to do with it any more, for waiters to fetch in vain:
///
/// ```compile_fail,E0277
/// use stanchion_activations::sync::Mutex;
/// static HITS: Mutex<u32> = Mutex::new(0);
/// let guard = HITS.lock();
/// std::thread::spawn(move || drop(guard));
/// ```
///
/// # Panics
///
/// Never. If the policy panics the process ends.
pub struct RawMutex<P = Adaptive> {
    /// See the table above. Changed by the threads that lock and unlock.
    word: AtomicU32,
    /// The policy of spinning. It learns from each wait.
    policy: P,
    /// The threads that wait.
    queue: Queue,
}

/// The mutex to use if you do not know which to use.
///
/// ```
/// use stanchion_activations::{Runtime, spawn, sync::Mutex};
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
/// Runtime::new(2)?.run(|| {
///     let threads: Vec<_> = (0..100).map(|n| spawn(move || *TOTAL.lock() += n)).collect();
///     threads.into_iter().for_each(|thread| thread.join().unwrap());
/// });
/// assert_eq!(*TOTAL.lock(), 4_950);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// A guard of a part of what a [`Mutex`] protects.
///
/// ```
/// use stanchion_activations::sync::{MappedMutexGuard, Mutex, MutexGuard};
///
/// static PAIR: Mutex<(u32, u32)> = Mutex::new((1, 2));
///
/// fn second() -> MappedMutexGuard<'static, u32> {
///     MutexGuard::map(PAIR.lock(), |pair| &mut pair.1)
/// }
/// *second() += 5;
/// assert_eq!(PAIR.lock().1, 7);
/// ```
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex with a policy of your choice, see [`stanchion_competitive::policy`].
///
/// ```
/// use stanchion_activations::sync::PolicyMutex;
/// use stanchion_competitive::policy::AlwaysBlock;
/// let mutex = PolicyMutex::<_, AlwaysBlock>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
pub type PolicyMutex<T, P> = lock_api::Mutex<RawMutex<P>, T>;

/// The guard of a [`PolicyMutex`].
pub type PolicyMutexGuard<'a, T, P> = lock_api::MutexGuard<'a, RawMutex<P>, T>;

fn holder_in(word: u32) -> u32 {
    word & HOLDER
}

/// Returns the number of the calling kernel thread. Not inlined: a thread that may migrate must not
/// use an address of a thread-local from before it parked.
#[inline(never)]
fn number() -> u32 {
    // `as`: indices are below `thread::INDICES`.
    thread::index().map_or(NAMELESS, |index| index as u32 + 1)
}

/// One wait for the lock.
struct Try {
    /// The number of the calling kernel thread.
    me: u32,
    /// [`AWAKE`] if this thread has to clear it, else 0.
    awake: u32,
    /// The time at which the thread came.
    came: Ticks,
    /// The price of a block, in ns.
    cost: u64,
    /// Set on a runtime of one processor.
    alone: bool,
    /// Set when the holder was fetched once.
    fetched: bool,
    /// The time of spinning, in ns.
    spun: u64,
    /// The time of blocks, in ns.
    blocked: u64,
    /// The number of blocks.
    blocks: u32,
}

impl Try {
    fn new(me: u32) -> Self {
        let processors = |worker: &Worker| worker.runtime.processors.count();
        let processors = context::with(|worker| worker.map(processors));
        let cost = if processors.is_some() { USER_COST_NS } else { cost::current() };
        Self {
            me,
            awake: 0,
            came: clock::now(),
            cost,
            alone: processors == Some(1),
            fetched: false,
            spun: 0,
            blocked: 0,
            blocks: 0,
        }
    }

    /// Returns whether the holder may be about to release the lock.
    fn is_worth_spinning(&self, word: u32) -> bool {
        !self.alone
            && holder_in(word) != self.me
            && !matches!(fetch::presence_of(word), Presence::Preempted | Presence::Blocked)
    }

    fn contention(&self, word: u32) -> Contention {
        let holder = match holder_in(word) {
            FREE | NAMELESS | ABSENT => None,
            number => Some(number as usize - 1),
        };
        // The number of spinning threads is not known: to count them would take the cache line away
        // from the holder twice.
        Contention::new(holder, self.cost)
            .with_others(0, u32::from(word & QUEUED != 0))
            .with_blocks(self.blocks)
    }
}

impl<P: Policy> RawMutex<P> {
    /// Returns a free lock with this policy, for policies that have parameters.
    ///
    /// ```
    /// use stanchion_activations::sync::{PolicyMutex, RawMutex};
    /// use stanchion_competitive::policy::FixedSpin;
    ///
    /// let raw = RawMutex::with_policy(FixedSpin::<20_000>::default());
    /// let mutex = PolicyMutex::from_raw(raw, 1);
    /// assert_eq!(*mutex.lock(), 1);
    /// ```
    #[must_use]
    pub const fn with_policy(policy: P) -> Self {
        Self { word: AtomicU32::new(FREE), policy, queue: Queue::new() }
    }

    /// Takes the lock if it reads free.
    #[inline]
    fn try_take(&self, me: u32, awake: u32) -> bool {
        // Relaxed: the exchange decides.
        let word = self.word.load(Ordering::Relaxed);
        // Acquire: pairs with the Release of the last holder.
        holder_in(word) == FREE
            && self
                .word
                .compare_exchange(word, (word | me) & !awake, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Waits for the lock. Returns `false` if the deadline came first.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, me: u32, deadline: Deadline) -> bool {
        let mut this = Try::new(me);
        let bomb = AbortOnUnwind::armed("a policy panicked while its thread waited for a mutex");
        let got = loop {
            if self.spin(&mut this, deadline) {
                break true;
            }
            if deadline.passed() {
                break self.give_up(&this);
            }
            let waiter = Waiter::new(this.came.to_bits());
            if self.join(&this, &waiter) {
                break true;
            }
            this.awake = 0;
            let slept = clock::now();
            match self.queue.wait(&waiter, deadline, |line| self.has_left(line)) {
                Answer::TimedOut => break false,
                Answer::Go => this.awake = AWAKE,
                Answer::Served => {
                    // Relaxed: the answer has acquired. Invariant 1.
                    self.word.fetch_xor(ABSENT ^ me, Ordering::Relaxed);
                }
            }
            this.blocks += 1;
            this.blocked += Ticks::from_bits(waiter.note()).nanos_since(slept);
            if this.awake == 0 {
                break true;
            }
        };
        if got {
            self.policy.adjust(&Wait::new(this.spun, this.blocked, this.blocks, this.cost));
        }
        bomb.defuse();
        got
    }

    /// Tries for as long as it is worth while. Returns whether it got the lock.
    fn spin(&self, this: &mut Try, deadline: Deadline) -> bool {
        // Relaxed, here and below: a hint where the holder is.
        let word = self.word.load(Ordering::Relaxed);
        let began = clock::now();
        let nanos = self.policy.threshold(&this.contention(word)).min(LONGEST_SPIN_NS);
        let time = began..began.plus_nanos(nanos);
        let attempt = || self.try_take(this.me, this.awake).then_some(());
        let got = retry_for(attempt, this.cost / FIRST_PAUSE..this.cost, || {
            let word = self.word.load(Ordering::Relaxed);
            time.contains(&clock::now())
                && !deadline.passed()
                && this.is_worth_spinning(word)
                && self.policy.keep_spinning(&this.contention(word))
        });
        this.spun += clock::now().nanos_since(began);
        got.is_some() || self.try_fetch(this, deadline)
    }

    /// Brings the holder here if it was preempted, once in a wait. Returns whether the lock is the
    /// caller's then.
    fn try_fetch(&self, this: &mut Try, deadline: Deadline) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if this.fetched || fetch::presence_of(word) != Presence::Preempted {
            return false;
        }
        this.fetched = true;
        self.fetch(word, this.me, this.awake, deadline)
    }

    /// Joins the queue. Returns `true` if the lock was free instead, and is the caller's.
    fn join(&self, this: &Try, waiter: &Waiter) -> bool {
        self.queue.with(|line| {
            let mut word = self.word.load(Ordering::Relaxed);
            loop {
                let (next, success) = if holder_in(word) == FREE {
                    // Acquire: pairs with the Release of the last holder.
                    (word | this.me, Ordering::Acquire)
                } else {
                    // Relaxed: see the header.
                    (word | QUEUED, Ordering::Relaxed)
                };
                let next = next & !this.awake;
                match self.word.compare_exchange_weak(word, next, success, Ordering::Relaxed) {
                    Ok(_) => break,
                    Err(now) => word = now,
                }
            }
            let got = holder_in(word) == FREE;
            if !got {
                // SAFETY: it is new, and `lock_slow` goes on by `Queue::wait`, or the process ends.
                unsafe { line.put(waiter, this.blocks > 0) };
            }
            got
        })
    }

    /// Clears `QUEUED` if the queue is empty, after a waiter has left it at its deadline.
    fn has_left(&self, line: &Line) {
        if line.is_empty() {
            // Relaxed: see the header.
            self.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
    }

    /// Takes the lock if it is free after all, although the deadline has passed. Called outside of
    /// the queue.
    fn give_up(&self, this: &Try) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, success) = if holder_in(word) == FREE {
                // Acquire: pairs with the Release of the last holder.
                (word | this.me, Ordering::Acquire)
            } else if this.awake == 0 {
                return false;
            } else {
                // The holder wakes the next waiter (Invariant 3). Relaxed: see the header.
                (word, Ordering::Relaxed)
            };
            match self.word.compare_exchange(word, next & !this.awake, success, Ordering::Relaxed) {
                Ok(_) => return holder_in(word) == FREE,
                Err(now) => word = now,
            }
        }
    }

    /// Releases the lock when there are waiters; to the first in line if `fair`.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self, fair: bool) {
        loop {
            // Relaxed: the exchanges decide.
            let word = self.word.load(Ordering::Relaxed);
            if word & FETCHED != 0 {
                if self.hand_over(word) {
                    return;
                }
            } else if word & QUEUED == 0 || (word & AWAKE != 0 && !fair) {
                // Release: pairs with the Acquire of the next holder.
                let next = word & !HOLDER;
                if self
                    .word
                    .compare_exchange(word, next, Ordering::Release, Ordering::Relaxed)
                    .is_ok()
                {
                    return;
                }
            } else if let Some(first) = self.release_to_first(fair) {
                first.notify();
                context::give_way();
                return;
            }
        }
    }

    /// Frees the lock and wakes the first in line, or gives it the lock. Returns `None` if there
    /// is no waiter any more, or a fetch came between.
    fn release_to_first(&self, fair: bool) -> Option<Thread> {
        let now = clock::now();
        self.queue.with(|line| {
            let came = Ticks::from_bits(line.first_note()?);
            let word = self.word.load(Ordering::Relaxed);
            if word & FETCHED != 0 {
                return None;
            }
            let gives = fair || now.nanos_since(came) >= LONGEST_WAIT_NS;
            let rest = if line.length() == 1 { word & !(HOLDER | QUEUED) } else { word & !HOLDER };
            let (next, answer) =
                if gives { (rest | ABSENT, Answer::Served) } else { (rest | AWAKE, Answer::Go) };
            // Release: pairs with the Acquire of the next holder. Only a fetch can come between.
            self.word.compare_exchange(word, next, Ordering::Release, Ordering::Relaxed).ok()?;
            line.answer_first(answer, now.to_bits())
        })
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<GuardNoSend> {
        self.lock_slow(number(), deadline).then(GuardNoSend::new)
    }
}

// SAFETY: by Invariant 1 the lock has one holder at a time, and the orderings make one holder's
// writes visible to the next.
unsafe impl<P: Policy> lock_api::RawMutex for RawMutex<P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_policy(P::INIT);

    /// Not `Send`: the word names the kernel thread of the thread that holds it.
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        let me = number();
        // Acquire: pairs with the Release of the last holder.
        if self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // Without a deadline it returns only with the lock.
            self.lock_slow(me, Deadline::NEVER);
        }
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.try_take(number(), 0).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // Relaxed: the exchange decides.
        let word = self.word.load(Ordering::Relaxed);
        // Release: pairs with the Acquire of the next holder.
        if word != holder_in(word)
            || self.word.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed).is_err()
        {
            self.unlock_slow(false);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        holder_in(self.word.load(Ordering::Relaxed)) != FREE
    }
}

// SAFETY: `unlock_slow` releases the lock, or makes a waiter its holder.
unsafe impl<P: Policy> RawMutexFair for RawMutex<P> {
    /// Gives the lock to the first in line, if there is a line.
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        self.unlock_slow(true);
    }
}

// SAFETY: `lock_until` yields a guard only for an acquired lock.
unsafe impl<P: Policy> RawMutexTimed for RawMutex<P> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        // The clock is read only by a thread that has to wait.
        self.try_lock().or_else(|| self.lock_until(Deadline::after(timeout)))
    }

    #[inline]
    fn try_lock_until(&self, instant: Instant) -> Option<GuardNoSend> {
        self.try_lock().or_else(|| self.lock_until(Deadline::at(instant)))
    }
}

impl<P: Policy> Default for RawMutex<P> {
    fn default() -> Self {
        lock_api::RawMutex::INIT
    }
}

impl<P: Policy> fmt::Debug for RawMutex<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMutex").field("locked", &self.is_locked()).finish_non_exhaustive()
    }
}
