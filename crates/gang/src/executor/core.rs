//! The core, which an executor's handles and threads share: the scheduler, and the state under the
//! lock.
//!
//! ```text
//! GangExecutor ──▶ Owner ──▶ Core ◀── threads, the timer
//!   handles          │         scheduler    lock-free: which member is on
//!   members ─────────┘         state        under a lock: the matrix, entities, threads
//! ```
//!
//! # Invariants
//!
//! 1. An entity is free, or belongs to one member of one gang. It does so from the gang's start
//!    until all members of the gang have ended.
//! 2. The scheduler's table is written under the lock of the state. It says what the matrix says,
//!    without the gangs that have not started.
//! 3. A thread is idle, with its mailbox in `idle`, or runs a member, or is between the two and
//!    will look at `exiting`.

use std::cmp::Reverse;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use stanchion_competitive::{Condvar, Mutex, MutexGuard};
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::control::{self, Deferred};
use stanchion_machine::thread::JoinHandle;

use super::context::Command;
use super::mailbox::Mailbox;
use super::settings::Settings;
use crate::error::SpawnError;
use crate::matrix::{AssignmentKind, GangKey, Matrix};
use crate::metrics::{Metrics, Overstay};
use crate::scheduler::SlotScheduler;
use crate::state::GangState;

/// The mailboxes of threads that are idle, or that will run the members of one gang.
pub(super) type Mailboxes = Vec<Arc<Mailbox<Command>>>;

/// A gang in the matrix.
pub(crate) struct GangRecord {
    /// The number of the gang.
    id: u64,
    /// The entities of its members, by index. Empty before it starts.
    entities: Arc<[usize]>,
}

/// The state of an executor, under its lock. Any thread writes it.
pub(super) struct CoreState {
    /// Which gang is in which slot, and on which processors.
    matrix: Matrix<GangRecord>,
    /// Entities without a member (Invariant 1).
    free_entities: Vec<usize>,
    /// The mailboxes of idle threads.
    idle: Mailboxes,
    /// The threads that `shutdown` waits for.
    threads: Vec<JoinHandle<()>>,
    /// True after `shutdown`: no gang may be spawned.
    closed: bool,
    /// True when no handle is left that could spawn a gang: threads end when they are idle.
    exiting: bool,
    /// The counts that are kept under the lock. The others are filled in when they are asked for.
    metrics: Metrics,
}

/// The most overstays that are kept after their gangs have ended: the worst ones.
const MOST_CULPRITS: usize = 64;

/// The core of an executor.
pub(super) struct Core {
    /// Decides which member runs.
    pub(super) scheduler: SlotScheduler,
    /// The choices of the builder.
    pub(super) settings: Settings,
    /// The state that is changed under the lock.
    state: Mutex<CoreState>,
    /// Notified when no gang is left.
    no_gangs: Condvar,
    /// The number of the next gang. Written by spawners.
    next_id: AtomicU64,
    /// 1 if the timer has to end. Written under the lock.
    over: AtomicU32,
}

/// The locked state. The thread that holds it is not interrupted meanwhile: a member that was
/// stopped with the lock would stop every thread that wants it.
pub(super) struct StateGuard<'s> {
    /// The lock.
    state: MutexGuard<'s, CoreState>,
    // Last: an interruption that is pending is carried out after the lock is free.
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

impl CoreState {
    /// Keeps the handles of threads that were started.
    pub(super) fn keep(&mut self, started: Vec<JoinHandle<()>>) {
        self.metrics.threads += started.len();
        self.threads.extend(started);
    }
}

impl Core {
    pub(super) fn new(settings: Settings, matrix: Matrix<GangRecord>) -> Self {
        let quantum = u64::try_from(settings.quantum.as_nanos()).unwrap_or(u64::MAX);
        let scheduler = SlotScheduler::new(settings.processors, settings.slots, quantum)
            .with_preemption(settings.switching.preemption());
        let state = CoreState {
            matrix,
            free_entities: (0..scheduler.entities()).rev().collect(),
            idle: Vec::new(),
            threads: Vec::new(),
            closed: false,
            exiting: false,
            metrics: Metrics::default(),
        };
        Self {
            scheduler,
            settings,
            state: Mutex::new(state),
            no_gangs: Condvar::new(),
            next_id: AtomicU64::fresh(0),
            over: AtomicU32::fresh(0),
        }
    }

    pub(super) fn lock(&self) -> StateGuard<'_> {
        let deferred = control::defer();
        StateGuard { state: self.state.lock(), _deferred: deferred }
    }

    /// Returns whether the timer has to end.
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: nothing else is to be seen. The timer is unparked afterwards.
        self.over.load(Ordering::Relaxed) != 0
    }

    /// Returns a number for a gang that no other gang has.
    pub(super) fn next_id(&self) -> u64 {
        // Relaxed: only the number counts.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Reserves processors in the matrix, which the scheduler does not know of yet. Returns at most
    /// as many mailboxes of idle threads as there are members.
    pub(super) fn reserve(
        &self,
        id: u64,
        members: usize,
    ) -> Result<(GangKey, Mailboxes), SpawnError> {
        let mut state = self.lock();
        if state.closed {
            return Err(SpawnError::Closed);
        }
        let record = GangRecord { id, entities: Arc::default() };
        let (key, _) = state.matrix.allocate(members, record)?;
        let busy = state.idle.len() - members.min(state.idle.len());
        Ok((key, state.idle.split_off(busy)))
    }

    /// Takes a reservation back. There were not enough threads.
    pub(super) fn cancel_reservation(&self, key: GangKey, mut mailboxes: Mailboxes) {
        let mut state = self.lock();
        state.idle.append(&mut mailboxes);
        state.matrix.complete(key);
        self.notify_if_no_gangs(&state);
    }

    /// Gives the members of a gang their entities, and publishes it. Keeps the threads that were
    /// started for it.
    pub(super) fn start_gang(&self, key: GangKey, started: Vec<JoinHandle<()>>) -> Arc<[usize]> {
        let mut state = self.lock();
        state.keep(started);
        let placement = state.matrix.placement(key).expect("its gang has not ended");
        let at = state.free_entities.len() - placement.processors.len();
        let entities: Arc<[usize]> = state.free_entities.split_off(at).into();
        for (&entity, processor) in entities.iter().zip(placement.processors.iter()) {
            self.scheduler.assign(entity, processor);
        }
        if let Some(record) = state.matrix.descriptor_mut(key) {
            record.entities = entities.clone();
        }
        state.metrics.gangs_begun += 1;
        self.publish(&state);
        entities
    }

    /// Counts a member out that has ended and is inactive. Returns whether it was the last of its
    /// gang.
    pub(super) fn complete_member(
        &self,
        gang: &GangState,
        key: GangKey,
        mailbox: &Arc<Mailbox<Command>>,
    ) -> bool {
        let mut state = self.lock();
        // Relaxed: under the lock.
        let last = gang.remaining.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            if let Some(record) = state.matrix.complete(key) {
                self.record_overstays(&mut state, &record);
                state.free_entities.extend(record.entities.iter());
            }
            state.metrics.gangs_ended += 1;
            self.unite(&mut state);
            self.publish(&state);
            self.notify_if_no_gangs(&state);
        }
        state.idle.push(mailbox.clone());
        if state.exiting {
            self.exit(&mut state);
        }
        last
    }

    /// Gives up slots if their gangs fit into others. Members that are on and lose their processors
    /// leave when they check.
    fn unite(&self, state: &mut CoreState) {
        for moved in state.matrix.unite() {
            state.metrics.gangs_moved += 1;
            if let Some(record) = state.matrix.descriptor(moved.gang) {
                for (&entity, processor) in record.entities.iter().zip(moved.to.processors.iter()) {
                    self.scheduler.migrate(entity, processor);
                }
            }
        }
    }

    /// Writes the matrix into the scheduler's table (Invariant 2).
    fn publish(&self, state: &CoreState) {
        let slots = state.matrix.last_used().map_or(0, |last| last + 1);
        let processors = self.settings.processors;
        let mut rows = vec![None; slots * processors];
        let mut row = vec![None; processors];
        for slot in (0..slots).filter(|&slot| !state.matrix.gangs(slot).is_empty()) {
            state.matrix.row(slot, self.settings.alternates, &mut row);
            for (to, assignment) in rows[slot * processors..].iter_mut().zip(&row) {
                *to = assignment.and_then(|assignment| {
                    // A gang that has not started has no entities.
                    let entities = &state.matrix.descriptor(assignment.gang)?.entities;
                    let is_home = assignment.kind == AssignmentKind::Home;
                    Some((*entities.get(assignment.member)?, is_home))
                });
            }
        }
        self.scheduler.publish(&rows);
    }

    fn notify_if_no_gangs(&self, state: &CoreState) {
        if state.matrix.is_empty() {
            self.no_gangs.notify_all();
        }
    }

    /// Refuses gangs from now on. If `waits`, sleeps until no gang is left, makes the threads end,
    /// and returns them.
    pub(super) fn shut_down(&self, waits: bool) -> Vec<JoinHandle<()>> {
        let mut state = self.lock();
        state.closed = true;
        if !waits {
            return Vec::new();
        }
        while !state.matrix.is_empty() {
            self.no_gangs.wait(&mut state.state);
        }
        self.exit(&mut state);
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.scheduler.timer.unpark();
        threads
    }

    /// Makes the timer and idle threads end, and the other threads when they are idle. No handle is
    /// left that could spawn a gang.
    pub(super) fn begin_exit(&self) {
        self.exit(&mut self.lock());
        self.scheduler.timer.unpark();
    }

    fn exit(&self, state: &mut CoreState) {
        state.exiting = true;
        // Relaxed: see `is_over`. No gang is left that would need the timer: each member has a
        // handle, and `shutdown` has waited for all gangs.
        self.over.store(1, Ordering::Relaxed);
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
        let culprits = &mut state.metrics.culprits;
        culprits.extend(self.overstays_of(record));
        if culprits.len() > MOST_CULPRITS {
            culprits.sort_by_key(|culprit| Reverse(culprit.lasted));
            culprits.truncate(MOST_CULPRITS);
        }
    }

    pub(super) fn metrics(&self) -> Metrics {
        let state = self.lock();
        let mut metrics = state.metrics.clone();
        let gangs = (0..state.matrix.slots()).flat_map(|slot| state.matrix.gangs(slot));
        let running = gangs.filter_map(|&gang| state.matrix.descriptor(gang));
        metrics.culprits.extend(running.flat_map(|record| self.overstays_of(record)));
        let counters = &self.scheduler.counters;
        Metrics {
            rotations_by_quantum: counters.rotations_by_quantum.get(),
            rotations_by_idle: counters.rotations_by_idle.get(),
            switches: counters.switches.get(),
            overstays: counters.overstays.get(),
            interruptions_refused: counters.refused_interruptions.get(),
            slots_used: state.matrix.used(),
            processor_time: Duration::from_nanos(counters.processor_time_ns.get()),
            lost_processor_time: Duration::from_nanos(counters.lost_ns.get()),
            ..metrics
        }
    }
}
