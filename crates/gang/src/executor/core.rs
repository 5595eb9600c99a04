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
//!    at `exiting`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use machine::control::{self, Deferred, Refused};
use machine::thread::JoinHandle;
use stanchion_competitive::{Condvar, Mutex, MutexGuard};

use super::context::MemberContext;
use super::mailbox::{Command, Mailbox, MemberTask};
use super::threads::{self, ThreadHandles};
use super::timer;
use crate::builder::GangExecutorBuilder;
use crate::error::{BuildError, Ended, SpawnError};
use crate::matrix::{Alternates, AssignmentKind, GangKey, Matrix};
use crate::member::Member;
use crate::metrics::{Metrics, Overstay};
use crate::scheduler::SlotScheduler;
use crate::spawn::{self, GangHandle, GangScope};
use crate::state::{Gang, GangState, SpawnedGang};
use crate::switching::Switching;

/// What the builder has said and nobody changes.
pub(crate) struct Settings {
    pub(crate) processors: usize,
    pub(crate) slots: usize,
    pub(crate) alternates: Alternates,
    pub(crate) quantum: Duration,
    pub(crate) grace_ns: u64,
    pub(crate) spin_ns: u64,
    pub(crate) switching: Switching,
    /// Why it is not what was asked for.
    pub(crate) refused: Option<Refused>,
    /// On which processors threads are kept, by seat; none if they are not.
    pub(crate) cpus: Vec<usize>,
    pub(crate) stack_size: Option<usize>,
}

/// A gang in the matrix.
struct GangRecord {
    id: u64,
    /// By member; none before it is spawned.
    entities: Arc<[usize]>,
}

pub(crate) struct CoreState {
    matrix: Matrix<()>,
    gangs: BTreeMap<GangKey, GangRecord>,
    /// Berths without a member (Invariant 1).
    free_entities: Vec<usize>,
    pub(crate) idle: Vec<Arc<Mailbox>>,
    pub(crate) threads: ThreadHandles,
    /// Nobody may spawn.
    closed: bool,
    /// Nobody will spawn.
    pub(crate) exiting: bool,
    gangs_begun: u64,
    gangs_ended: u64,
    gangs_moved: u64,
    culprits: Vec<Overstay>,
}

/// How many of those that overstayed are remembered after their gang has ended: the worst.
const MOST_CULPRITS: usize = 64;

pub(crate) struct Core {
    pub(crate) scheduler: SlotScheduler,
    pub(crate) settings: Settings,
    pub(crate) state: Mutex<CoreState>,
    /// No gang is left.
    no_gangs: Condvar,
    next_id: AtomicU64,
    /// Whether the clock may end.
    timer_exits: AtomicU32,
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
    core: Arc<Core>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.begin_exit(&mut self.core.lock());
        self.core.scheduler.timer.unpark();
    }
}

impl GangExecutor {
    /// An executor with so many seats, 0 for as many as the process may use processors, and the
    /// defaults of [`GangExecutorBuilder`].
    ///
    /// # Errors
    ///
    /// [`BuildError`], with what would mend it.
    pub fn new(processors: usize) -> Result<Self, BuildError> {
        Self::builder().processors(processors).build()
    }

    /// Says how an executor is to be, then builds it.
    pub fn builder() -> GangExecutorBuilder {
        GangExecutorBuilder::new()
    }

    pub(crate) fn start(settings: Settings, matrix: Matrix<()>) -> Result<Self, BuildError> {
        let quantum = u64::try_from(settings.quantum.as_nanos()).unwrap_or(u64::MAX);
        let scheduler = SlotScheduler::new(settings.processors, settings.slots, quantum)
            .with_preemption(settings.switching.preemption());
        let free_entities = (0..scheduler.entities()).rev().collect();
        let state = CoreState {
            matrix,
            gangs: BTreeMap::new(),
            free_entities,
            idle: Vec::new(),
            threads: ThreadHandles::default(),
            closed: false,
            exiting: false,
            gangs_begun: 0,
            gangs_ended: 0,
            gangs_moved: 0,
            culprits: Vec::new(),
        };
        let core = Arc::new(Core {
            scheduler,
            settings,
            state: Mutex::new(state),
            no_gangs: Condvar::new(),
            next_id: AtomicU64::fresh(0),
            timer_exits: AtomicU32::fresh(0),
        });
        let timer = timer::start(core.clone()).map_err(|source| BuildError::NoThread { source })?;
        core.lock().threads.keep(timer);
        Ok(Self { owner: Arc::new(Owner { core }) })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    pub(crate) fn scheduler(&self) -> &SlotScheduler {
        &self.core().scheduler
    }

    pub(crate) fn spin_ns(&self) -> u64 {
        self.core().settings.spin_ns
    }

    pub(crate) fn cpus(&self) -> &[usize] {
        &self.core().settings.cpus
    }

    /// How many seats there are: the largest gang that it can run.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.core().settings.processors
    }

    /// For how long a slot is on while others wait for their turn.
    #[must_use]
    pub fn quantum(&self) -> Duration {
        self.core().settings.quantum
    }

    /// Returns how members are taken off whose slot's turn is over: as the builder said, unless
    /// that is [refused](Self::switching_refused).
    #[must_use]
    pub fn switching(&self) -> Switching {
        match self.switching_refused() {
            None => self.core().settings.switching,
            Some(_) => Switching::Cooperative,
        }
    }

    /// Returns why members are not taken off as the builder said, if they are not: the system
    /// refuses it, or the program has taken the signal since. Costs a system call under
    /// [`Switching::Signal`].
    #[must_use]
    pub fn switching_refused(&self) -> Option<Refused> {
        let settings = &self.core().settings;
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
        let gang = Arc::new(self.new_gang(members, body)?);
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
        let core = self.core().clone();
        let is_member = MemberContext::with_current(|current| {
            current.is_some_and(|context| Arc::ptr_eq(context.executor().core(), &core))
        });
        let mut state = core.lock();
        state.closed = true;
        if is_member {
            return;
        }
        while !state.gangs.is_empty() {
            core.no_gangs.wait(&mut state.state);
        }
        core.begin_exit(&mut state);
        let threads = state.threads.take();
        drop(state);
        core.scheduler.timer.unpark();
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// What it has done until now.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core().metrics()
    }

    /// A gang that is not in the matrix yet. Refuses sizes for which there is none, so that no
    /// board is made for them.
    pub(crate) fn new_gang<F, R>(&self, members: usize, body: F) -> Result<Gang<F, R>, SpawnError> {
        let processors = self.processors();
        match members {
            0 => Err(SpawnError::Empty),
            _ if members > processors => Err(SpawnError::TooLarge { asked: members, processors }),
            _ => {
                // Relaxed: a number that nobody else has.
                let id = self.core().next_id.fetch_add(1, Ordering::Relaxed);
                Ok(Gang::new(id, members, body))
            }
        }
    }

    /// Finds seats and threads for a gang, and lets it begin.
    pub(crate) fn launch(&self, gang: Arc<dyn SpawnedGang>) -> Result<(), SpawnError> {
        let core = self.core();
        // A member that was stopped on the way would leave a gang of which some have begun.
        let _deferred = control::defer();
        let (id, members) = (gang.state().id, gang.state().members());
        let (key, mut mailboxes) = core.reserve(id, members)?;
        let idle = mailboxes.len();
        let mut started = Vec::new();
        while mailboxes.len() < members {
            match threads::start(core) {
                Ok((mailbox, thread)) => {
                    mailboxes.push(mailbox);
                    started.push(thread);
                }
                Err(source) => {
                    let with = mailboxes.len();
                    for mailbox in mailboxes.drain(idle..) {
                        mailbox.send(Command::Exit);
                    }
                    // They have nothing to do: what they took of the system's memory is free when
                    // this returns.
                    started.into_iter().for_each(|thread| drop(thread.join()));
                    core.cancel_reservation(key, mailboxes);
                    return Err(SpawnError::NoThread { started: with, asked: members, source });
                }
            }
        }
        let entities = core.start_gang(key, started);
        for (index, mailbox) in mailboxes.into_iter().enumerate() {
            mailbox.send(Command::Run(MemberTask {
                gang: gang.clone(),
                key,
                executor: self.clone(),
                index,
                entities: entities.clone(),
            }));
        }
        Ok(())
    }
}

/// The state, locked by a thread that is not interrupted meanwhile: a member that was stopped with
/// it would stop everybody who wants it.
pub(crate) struct StateGuard<'s> {
    state: MutexGuard<'s, CoreState>,
    // Last: what is pending is carried out after the lock is free.
    _deferred: Deferred,
}

impl Deref for StateGuard<'_> {
    type Target = CoreState;

    fn deref(&self) -> &CoreState {
        &self.state
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut CoreState {
        &mut self.state
    }
}

impl Core {
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        let deferred = control::defer();
        StateGuard { state: self.state.lock(), _deferred: deferred }
    }

    /// Whether there is nothing more to do, for ever.
    pub(crate) fn timer_exits(&self) -> bool {
        // Relaxed: there is nothing to be seen but that; the clock's bell is rung afterwards.
        self.timer_exits.load(Ordering::Relaxed) != 0
    }

    /// A place in the matrix, which the gate does not know of yet, and threads that are idle, at
    /// most so many.
    fn reserve(&self, id: u64, members: usize) -> Result<(GangKey, Vec<Arc<Mailbox>>), SpawnError> {
        let mut state = self.lock();
        if state.closed {
            return Err(SpawnError::Closed);
        }
        let (key, _) = state.matrix.allocate(members, ())?;
        state.gangs.insert(key, GangRecord { id, entities: Arc::default() });
        let busy = state.idle.len() - members.min(state.idle.len());
        Ok((key, state.idle.split_off(busy)))
    }

    /// There are not enough threads: what was reserved is free again.
    fn cancel_reservation(&self, key: GangKey, mut mailboxes: Vec<Arc<Mailbox>>) {
        let mut state = self.lock();
        state.idle.append(&mut mailboxes);
        state.matrix.complete(key);
        state.gangs.remove(&key);
        self.notify_if_no_gangs(&mut state);
    }

    /// Gives the members of a gang their berths, and publishes it. Keeps the threads that were
    /// started for it.
    fn start_gang(&self, key: GangKey, started: Vec<JoinHandle<()>>) -> Arc<[usize]> {
        let mut state = self.lock();
        started.into_iter().for_each(|thread| state.threads.keep(thread));
        let placement = state.matrix.placement(key).expect("its gang has not ended");
        let at = state.free_entities.len() - placement.processors.len();
        let entities: Arc<[usize]> = state.free_entities.split_off(at).into();
        for (&entity, processor) in entities.iter().zip(placement.processors.iter()) {
            self.scheduler.assign(entity, processor);
        }
        if let Some(record) = state.gangs.get_mut(&key) {
            record.entities = entities.clone();
        }
        state.gangs_begun += 1;
        self.publish(&state);
        entities
    }

    /// A member has ended, and left the gate. True, if it was the last of its gang.
    pub(crate) fn complete_member(
        &self,
        gang: &GangState,
        key: GangKey,
        mailbox: &Arc<Mailbox>,
    ) -> bool {
        let mut state = self.lock();
        // Relaxed: under the lock.
        let last = gang.remaining.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            state.matrix.complete(key);
            if let Some(record) = state.gangs.remove(&key) {
                self.record_overstays(&mut state, &record);
                state.free_entities.extend(record.entities.iter());
            }
            state.gangs_ended += 1;
            self.unite(&mut state);
            self.publish(&state);
            self.notify_if_no_gangs(&mut state);
        }
        state.idle.push(mailbox.clone());
        if state.exiting {
            self.begin_exit(&mut state);
        }
        last
    }

    /// Gives up slots whose gangs fit into others. Those that are on lose their seats, and leave
    /// when they look.
    fn unite(&self, state: &mut CoreState) {
        for moved in state.matrix.unite() {
            state.gangs_moved += 1;
            if let Some(record) = state.gangs.get(&moved.gang) {
                for (&entity, processor) in record.entities.iter().zip(moved.to.processors.iter()) {
                    self.scheduler.migrate(entity, processor);
                }
            }
        }
    }

    /// Writes the matrix into the gate's table (Invariant 2).
    fn publish(&self, state: &CoreState) {
        let slots = state.matrix.last_used().map_or(0, |last| last + 1);
        let processors = self.settings.processors;
        let mut rows = vec![None; slots * processors];
        let mut row = vec![None; processors];
        for slot in 0..slots {
            if state.matrix.gangs(slot).is_empty() {
                continue;
            }
            state.matrix.row(slot, self.settings.alternates, &mut row);
            for (to, assignment) in rows[slot * processors..].iter_mut().zip(&row) {
                *to = assignment.and_then(|assignment| {
                    let entities = &state.gangs.get(&assignment.gang)?.entities;
                    Some((
                        *entities.get(assignment.member)?,
                        assignment.kind == AssignmentKind::Home,
                    ))
                });
            }
        }
        self.scheduler.publish(&rows);
    }

    fn notify_if_no_gangs(&self, state: &mut CoreState) {
        if state.gangs.is_empty() {
            self.no_gangs.notify_all();
        }
    }

    /// Nobody will spawn: idle threads end, and the others when they have nothing to do. The clock
    /// has to be told.
    fn begin_exit(&self, state: &mut CoreState) {
        state.exiting = true;
        // Relaxed: see `timer_exits`. No gang is left that would need the clock: each member has a
        // handle, and who shuts down has waited for all.
        self.timer_exits.store(1, Ordering::Relaxed);
        for mailbox in state.idle.drain(..) {
            mailbox.send(Command::Exit);
        }
    }

    fn overstays_of<'s>(&'s self, record: &'s GangRecord) -> impl Iterator<Item = Overstay> + 's {
        record.entities.iter().enumerate().filter_map(|(member, &entity)| {
            let (times, lasted, now) = self.scheduler.overstay_record(entity)?;
            Some(Overstay { gang: record.id, member, times, lasted, now })
        })
    }

    fn record_overstays(&self, state: &mut CoreState, record: &GangRecord) {
        state.culprits.extend(self.overstays_of(record));
        if state.culprits.len() > MOST_CULPRITS {
            state.culprits.sort_by_key(|culprit| core::cmp::Reverse(culprit.lasted));
            state.culprits.truncate(MOST_CULPRITS);
        }
    }

    fn metrics(&self) -> Metrics {
        let state = self.lock();
        let mut culprits = state.culprits.clone();
        culprits.extend(state.gangs.values().flat_map(|record| self.overstays_of(record)));
        let counters = &self.scheduler.counters;
        Metrics {
            gangs_begun: state.gangs_begun,
            gangs_ended: state.gangs_ended,
            gangs_moved: state.gangs_moved,
            rotations_by_quantum: counters.rotations_by_quantum.get(),
            rotations_by_idle: counters.rotations_by_idle.get(),
            switches: counters.switches.get(),
            overstays: counters.overstays.get(),
            interruptions_refused: counters.refused_interruptions.get(),
            culprits,
            slots_used: state.matrix.used(),
            threads: state.threads.len(),
            processor_time: Duration::from_nanos(counters.processor_time_ns.get()),
            lost_processor_time: Duration::from_nanos(counters.lost_ns.get()),
        }
    }
}

impl fmt::Debug for GangExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangExecutor")
            .field("processors", &self.processors())
            .field("quantum", &self.quantum())
            .field("switching", &self.switching())
            .finish_non_exhaustive()
    }
}
