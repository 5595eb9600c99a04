//! The executor: who gets which seats, and the threads that sit there.
//!
//! ```text
//! GangExecutor ──▶ Owner ──▶ Shared ◀── threads, the clock
//!   handles         │         gate     lock-free: who is on (gate.rs)
//!   members ────────┘         state    under a lock: the matrix, berths, threads
//! ```
//!
//! Why the owner: threads must not keep an executor alive for which nobody has a handle and which
//! runs no gang, and no thread must wait for another in a destructor. When the last handle goes,
//! and no gang runs, the owner tells the threads to end and goes.
//!
//! # Invariants
//!
//! 1. A berth is free, or belongs to one member of one gang, from the gang's spawning until all of
//!    its members have ended.
//! 2. The table of the gate is written under the lock of the state, and says what the matrix says,
//!    without the gangs that are not yet spawned.
//! 3. A thread is idle, its desk in `idle`, or runs a member, or is between the two and will look
//!    at `leaving`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use machine::control::{self, Deferred, Refused};
use machine::thread::JoinHandle;
use stanchion_competitive::{Condvar, Mutex, MutexGuard};

use super::context::Post;
use super::mailbox::{Desk, Mail, Order};
use super::threads::{self, Threads};
use super::timer;
use crate::builder::GangExecutorBuilder;
use crate::error::{BuildError, Ended, SpawnError};
use crate::gang::{Gang, Run, Team};
use crate::matrix::{Alternates, Gang as Name, Matrix, Stay};
use crate::member::Member;
use crate::metrics::{Metrics, Overstay};
use crate::scheduler::Gate;
use crate::spawn::{self, GangHandle, GangScope};
use crate::switching::Switching;

/// What the builder has said and nobody changes.
pub(crate) struct Settings {
    pub(crate) seats: usize,
    pub(crate) slots: usize,
    pub(crate) alternates: Alternates,
    pub(crate) quantum: Duration,
    pub(crate) grace_ns: u64,
    pub(crate) spin_ns: u64,
    pub(crate) switching: Switching,
    /// Why it is not what was asked for.
    pub(crate) refused: Option<Refused>,
    /// On which processors threads are kept, by seat; none if they are not.
    pub(crate) processors: Vec<usize>,
    pub(crate) stack_size: Option<usize>,
}

/// A gang in the matrix.
struct Booking {
    id: u64,
    /// By member; none before it is spawned.
    berths: Arc<[usize]>,
}

pub(crate) struct State {
    matrix: Matrix<()>,
    bookings: BTreeMap<Name, Booking>,
    /// Berths without a member (Invariant 1).
    free: Vec<usize>,
    pub(crate) idle: Vec<Arc<Desk>>,
    pub(crate) threads: Threads,
    /// Nobody may spawn.
    closed: bool,
    /// Nobody will spawn.
    pub(crate) leaving: bool,
    begun: u64,
    ended: u64,
    moved: u64,
    culprits: Vec<Overstay>,
}

/// How many of those that overstayed are remembered after their gang has ended: the worst.
const CULPRITS: usize = 64;

pub(crate) struct Shared {
    pub(crate) gate: Gate,
    pub(crate) settings: Settings,
    pub(crate) state: Mutex<State>,
    /// No gang is left.
    quiet: Condvar,
    names: AtomicU64,
    /// Whether the clock may end.
    over: AtomicU32,
}

/// Runs gangs: threads that are on together, each on a seat of its own, and off together.
///
/// A seat stands for a processor. When more members want to run than there are seats, gangs take
/// turns: each gets a slot, in which all its members have their seats, for a quantum. Members of
/// one gang can therefore wait for each other by spinning.
///
/// Clones are handles to the same executor. When the last is gone, gangs that run go on to their
/// end, and then its threads end; nobody waits for that. [`shutdown`](Self::shutdown) waits.
///
/// It does not live on in a process that `fork` makes: its threads are not there, and a gang that
/// is spawned there never runs.
///
/// ```
/// use stanchion_gang::{GangExecutor, Member};
///
/// let executor = GangExecutor::new(2)?;
/// let gang = executor.spawn(2, |member: &mut Member| {
///     let mut sum = member.index() as u64;
///     for _ in 0..10 {
///         sum = member.all_reduce(sum, |a, b| a + b)?;
///     }
///     Ok(sum)
/// })?;
/// assert_eq!(gang.join()?, [512, 512]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct GangExecutor {
    owner: Arc<Owner>,
}

struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.leave(&mut self.shared.lock());
        self.shared.gate.clock.ring();
    }
}

impl GangExecutor {
    /// An executor with so many seats, 0 for as many as the process may use processors, and the
    /// defaults of [`GangExecutorBuilder`].
    ///
    /// # Errors
    ///
    /// [`BuildError`], with what would mend it.
    pub fn new(seats: usize) -> Result<Self, BuildError> {
        Self::builder().seats(seats).build()
    }

    /// Says how an executor is to be, then builds it.
    pub fn builder() -> GangExecutorBuilder {
        GangExecutorBuilder::new()
    }

    pub(crate) fn start(settings: Settings, matrix: Matrix<()>) -> Result<Self, BuildError> {
        let quantum = u64::try_from(settings.quantum.as_nanos()).unwrap_or(u64::MAX);
        let gate =
            Gate::new(settings.seats, settings.slots, quantum).forcing(settings.switching.force());
        let free = (0..gate.berths()).rev().collect();
        let state = State {
            matrix,
            bookings: BTreeMap::new(),
            free,
            idle: Vec::new(),
            threads: Threads::default(),
            closed: false,
            leaving: false,
            begun: 0,
            ended: 0,
            moved: 0,
            culprits: Vec::new(),
        };
        let shared = Arc::new(Shared {
            gate,
            settings,
            state: Mutex::new(state),
            quiet: Condvar::new(),
            names: AtomicU64::fresh(0),
            over: AtomicU32::fresh(0),
        });
        let clock =
            timer::start(shared.clone()).map_err(|source| BuildError::NoThread { source })?;
        shared.lock().threads.keep(clock);
        Ok(Self { owner: Arc::new(Owner { shared }) })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.shared().gate
    }

    pub(crate) fn spin_ns(&self) -> u64 {
        self.shared().settings.spin_ns
    }

    pub(crate) fn processors(&self) -> &[usize] {
        &self.shared().settings.processors
    }

    /// How many seats there are: the largest gang that it can run.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.shared().settings.seats
    }

    /// For how long a slot is on while others wait for their turn.
    #[must_use]
    pub fn quantum(&self) -> Duration {
        self.shared().settings.quantum
    }

    /// Returns how members are taken off whose slot's turn is over: as the builder said, unless
    /// that is [refused](Self::switching_refused).
    #[must_use]
    pub fn switching(&self) -> Switching {
        match self.switching_refused() {
            None => self.shared().settings.switching,
            Some(_) => Switching::Cooperative,
        }
    }

    /// Returns why members are not taken off as the builder said, if they are not: the system
    /// refuses it, or the program has taken the signal since. Costs a system call under
    /// [`Switching::Signal`].
    #[must_use]
    pub fn switching_refused(&self) -> Option<Refused> {
        let settings = &self.shared().settings;
        settings.refused.clone().or_else(|| match settings.switching {
            Switching::Signal => control::still_interrupts().err(),
            Switching::Cooperative | Switching::Priority => None,
        })
    }

    /// Runs `body` on `members` threads at the same time, and hands back what will have their
    /// results.
    ///
    /// It starts threads if the executor has fewer idle ones, some 50 µs each; they stay for later
    /// gangs, with what members have put into their thread-locals, until the executor ends. One
    /// that keeps a handle of its executor there keeps it from ending; but for `shutdown`.
    ///
    /// # Errors
    ///
    /// [`SpawnError`], with what would mend it; then nothing is left of the gang.
    pub fn spawn<F, R>(&self, members: usize, body: F) -> Result<GangHandle<R>, SpawnError>
    where
        F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync + 'static,
        R: Send + 'static,
    {
        let gang = Arc::new(self.gang(members, body)?);
        self.launch(gang.clone())?;
        Ok(GangHandle::new(gang))
    }

    /// Runs gangs that borrow what lives longer than the scope, which ends when all its gangs have.
    ///
    /// # Panics
    ///
    /// With the panic of `body`; else, if a gang that nobody has joined has panicked, with that.
    ///
    /// ```
    /// use stanchion_gang::GangExecutor;
    ///
    /// let executor = GangExecutor::new(2)?;
    /// let words = ["thick", "and", "thin"];
    /// let lengths = executor.scope(|scope| {
    ///     let gang = scope.spawn(2, |member| Ok(words[member.index()].len()))?;
    ///     Ok::<_, Box<dyn std::error::Error>>(gang.join()?)
    /// })?;
    /// assert_eq!(lengths, [5, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, T>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope GangScope<'scope, 'env>) -> T,
    ) -> T {
        spawn::run(self, body)
    }

    /// Ends the executor: nobody can spawn any more, gangs that run go on to their end, and this
    /// waits for them and for the threads.
    ///
    /// Called by a member of a gang of this executor, which would have to wait for itself, it does
    /// not wait. If two threads call it at once, one of them waits for the threads, and both for
    /// the gangs.
    pub fn shutdown(self) {
        let shared = self.shared().clone();
        let is_member = Post::with_current(|current| {
            current.is_some_and(|post| Arc::ptr_eq(post.executor().shared(), &shared))
        });
        let mut state = shared.lock();
        state.closed = true;
        if is_member {
            return;
        }
        while !state.bookings.is_empty() {
            shared.quiet.wait(&mut state.state);
        }
        shared.leave(&mut state);
        let threads = state.threads.take();
        drop(state);
        shared.gate.clock.ring();
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// What it has done until now.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared().metrics()
    }

    /// A gang that is not in the matrix yet. Refuses sizes for which there is none, so that no
    /// board is made for them.
    pub(crate) fn gang<F, R>(&self, members: usize, body: F) -> Result<Gang<F, R>, SpawnError> {
        let seats = self.seats();
        match members {
            0 => Err(SpawnError::Empty),
            _ if members > seats => Err(SpawnError::TooLarge { asked: members, seats }),
            _ => {
                // Relaxed: a number that nobody else has.
                let id = self.shared().names.fetch_add(1, Ordering::Relaxed);
                Ok(Gang::new(id, members, body))
            }
        }
    }

    /// Finds seats and threads for a gang, and lets it begin.
    pub(crate) fn launch(&self, gang: Arc<dyn Run>) -> Result<(), SpawnError> {
        let shared = self.shared();
        // A member that was stopped on the way would leave a gang of which some have begun.
        let _deferred = control::defer();
        let (id, members) = (gang.team().id, gang.team().members());
        let (name, mut desks) = shared.reserve(id, members)?;
        let idle = desks.len();
        let mut started = Vec::new();
        while desks.len() < members {
            match threads::start(shared) {
                Ok((desk, thread)) => {
                    desks.push(desk);
                    started.push(thread);
                }
                Err(source) => {
                    let with = desks.len();
                    for desk in desks.drain(idle..) {
                        desk.give(Mail::Leave);
                    }
                    // They have nothing to do: what they took of the system's memory is free when
                    // this returns.
                    started.into_iter().for_each(|thread| drop(thread.join()));
                    shared.give_up(name, desks);
                    return Err(SpawnError::NoThread { started: with, asked: members, source });
                }
            }
        }
        let berths = shared.seat(name, started);
        for (index, desk) in desks.into_iter().enumerate() {
            desk.give(Mail::Order(Order {
                gang: gang.clone(),
                name,
                executor: self.clone(),
                index,
                berths: berths.clone(),
            }));
        }
        Ok(())
    }
}

/// The state, locked by a thread that is not interrupted meanwhile: a member that was stopped with
/// it would stop everybody who wants it.
pub(crate) struct Locked<'s> {
    state: MutexGuard<'s, State>,
    // Last: what is pending is carried out after the lock is free.
    _deferred: Deferred,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> Locked<'_> {
        let deferred = control::defer();
        Locked { state: self.state.lock(), _deferred: deferred }
    }

    /// Whether there is nothing more to do, for ever.
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: there is nothing to be seen but that; the clock's bell is rung afterwards.
        self.over.load(Ordering::Relaxed) != 0
    }

    /// A place in the matrix, which the gate does not know of yet, and threads that are idle, at
    /// most so many.
    fn reserve(&self, id: u64, members: usize) -> Result<(Name, Vec<Arc<Desk>>), SpawnError> {
        let mut state = self.lock();
        if state.closed {
            return Err(SpawnError::Closed);
        }
        let (name, _) = state.matrix.allocate(members, ())?;
        state.bookings.insert(name, Booking { id, berths: Arc::default() });
        let busy = state.idle.len() - members.min(state.idle.len());
        Ok((name, state.idle.split_off(busy)))
    }

    /// There are not enough threads: what was reserved is free again.
    fn give_up(&self, name: Name, mut desks: Vec<Arc<Desk>>) {
        let mut state = self.lock();
        state.idle.append(&mut desks);
        state.matrix.complete(name);
        state.bookings.remove(&name);
        self.after_a_gang(&mut state);
    }

    /// Gives the members of a gang their berths, and publishes it. Keeps the threads that were
    /// started for it.
    fn seat(&self, name: Name, started: Vec<JoinHandle<()>>) -> Arc<[usize]> {
        let mut state = self.lock();
        started.into_iter().for_each(|thread| state.threads.keep(thread));
        let place = state.matrix.place(name).expect("its gang has not ended");
        let at = state.free.len() - place.seats.len();
        let berths: Arc<[usize]> = state.free.split_off(at).into();
        for (&berth, seat) in berths.iter().zip(place.seats.iter()) {
            self.gate.assign(berth, seat);
        }
        if let Some(booking) = state.bookings.get_mut(&name) {
            booking.berths = berths.clone();
        }
        state.begun += 1;
        self.publish(&state);
        berths
    }

    /// A member has ended, and left the gate. True, if it was the last of its gang.
    pub(crate) fn complete(&self, gang: &Team, name: Name, desk: &Arc<Desk>) -> bool {
        let mut state = self.lock();
        // Relaxed: under the lock.
        let last = gang.remaining.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            state.matrix.complete(name);
            if let Some(booking) = state.bookings.remove(&name) {
                self.note_culprits(&mut state, &booking);
                state.free.extend(booking.berths.iter());
            }
            state.ended += 1;
            self.unite(&mut state);
            self.publish(&state);
            self.after_a_gang(&mut state);
        }
        state.idle.push(desk.clone());
        if state.leaving {
            self.leave(&mut state);
        }
        last
    }

    /// Gives up slots whose gangs fit into others. Those that are on lose their seats, and leave
    /// when they look.
    fn unite(&self, state: &mut State) {
        for moved in state.matrix.unite() {
            state.moved += 1;
            if let Some(booking) = state.bookings.get(&moved.gang) {
                for (&berth, seat) in booking.berths.iter().zip(moved.to.seats.iter()) {
                    self.gate.move_to(berth, seat);
                }
            }
        }
    }

    /// Writes the matrix into the gate's table (Invariant 2).
    fn publish(&self, state: &State) {
        let slots = state.matrix.last_used().map_or(0, |last| last + 1);
        let seats = self.settings.seats;
        let mut rows = vec![None; slots * seats];
        let mut row = vec![None; seats];
        for slot in 0..slots {
            if state.matrix.gangs(slot).is_empty() {
                continue;
            }
            state.matrix.row(slot, self.settings.alternates, &mut row);
            for (to, sitting) in rows[slot * seats..].iter_mut().zip(&row) {
                *to = sitting.and_then(|sitting| {
                    let berths = &state.bookings.get(&sitting.gang)?.berths;
                    Some((*berths.get(sitting.member)?, sitting.stay == Stay::Home))
                });
            }
        }
        self.gate.publish(&rows);
    }

    fn after_a_gang(&self, state: &mut State) {
        if state.bookings.is_empty() {
            self.quiet.notify_all();
        }
    }

    /// Nobody will spawn: idle threads end, and the others when they have nothing to do. The clock
    /// has to be told.
    fn leave(&self, state: &mut State) {
        state.leaving = true;
        // Relaxed: see `is_over`. No gang is left that would need the clock: each member has a
        // handle, and who shuts down has waited for all.
        self.over.store(1, Ordering::Relaxed);
        for desk in state.idle.drain(..) {
            desk.give(Mail::Leave);
        }
    }

    fn culprits<'s>(&'s self, booking: &'s Booking) -> impl Iterator<Item = Overstay> + 's {
        booking.berths.iter().enumerate().filter_map(|(member, &berth)| {
            let (times, lasted, now) = self.gate.overstays(berth)?;
            Some(Overstay { gang: booking.id, member, times, lasted, now })
        })
    }

    fn note_culprits(&self, state: &mut State, booking: &Booking) {
        state.culprits.extend(self.culprits(booking));
        if state.culprits.len() > CULPRITS {
            state.culprits.sort_by_key(|culprit| core::cmp::Reverse(culprit.lasted));
            state.culprits.truncate(CULPRITS);
        }
    }

    fn metrics(&self) -> Metrics {
        let state = self.lock();
        let mut culprits = state.culprits.clone();
        culprits.extend(state.bookings.values().flat_map(|booking| self.culprits(booking)));
        let counts = &self.gate.counts;
        Metrics {
            gangs_begun: state.begun,
            gangs_ended: state.ended,
            gangs_moved: state.moved,
            rotations_by_quantum: counts.by_quantum.get(),
            rotations_by_idle: counts.by_idle.get(),
            switches: counts.switches.get(),
            overstays: counts.overstays.get(),
            interruptions_refused: counts.refused.get(),
            culprits,
            slots_used: state.matrix.used(),
            threads: state.threads.len(),
            seat_time: Duration::from_nanos(counts.seat_time.get()),
            lost_seat_time: Duration::from_nanos(counts.lost.get()),
        }
    }
}

impl fmt::Debug for GangExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangExecutor")
            .field("seats", &self.seats())
            .field("quantum", &self.quantum())
            .field("switching", &self.switching())
            .finish_non_exhaustive()
    }
}
