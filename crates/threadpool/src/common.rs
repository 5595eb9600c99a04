//! What is the same in every pool, whatever its strategy: seats, orders, behaviour, and how long an
//! idle worker spins.
//!
//! # Orders
//!
//! Others tell a worker something by a bit in its seat's word, which it looks at between two tasks,
//! while it searches, and while it waits.
//!
//! | order | given by | until |
//! | --- | --- | --- |
//! | mail | a broadcast | the worker empties its box |
//! | leave | a pool that becomes smaller, or is closed | the thread has ended; or the pool becomes larger again before the worker has seen it |
//! | left | the worker itself: it has seen `leave`, which cannot be taken back any more | the seat's next thread is started |
//! | serve | who lends a spare | the spare has seen it |
//! | lent | who has seen the worker blocked (`lookout.rs`) | somebody has seen that it is not any more |
//!
//! # Orderings
//!
//! An order is given with Release and seen with Acquire: who is told to leave because the pool was
//! closed sees that it was, and does not leave as if it had become smaller; a spare that is told to
//! serve rests after it was enlisted. Whoever gives an order tells the worker afterwards, so that
//! its last look before it sleeps sees it.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::presence::{self, Presence};
use machine::{clock, topology, wait};
use stanchion_competitive::Mutex;

use crate::closing::Closing;
use crate::ending::Ending;
use crate::fifo::{Detached, Fifo};
use crate::forks::Forks;
use crate::future::Held;
use crate::guest;
use crate::job::Fate;
use crate::join::{Fork, Stolen};
use crate::listed::Listed;
use crate::lookout::{Away, Lookout, Suspicion};
use crate::metrics::Counters;
use crate::registry::Core;
use crate::roster::{self, Names, Roster};
use crate::sleeping::Sleeping;
use crate::worker::{Wait, Worker};

/// There is mail for this worker.
pub(crate) const MAIL: u32 = 1;
/// It is to end.
pub(crate) const LEAVE: u32 = 2;
/// It ends: nobody can take `LEAVE` back any more.
pub(crate) const LEFT: u32 = 4;
/// A spare is to take part.
pub(crate) const SERVE: u32 = 8;
/// It was seen blocked, and a spare was lent for it.
pub(crate) const LENT: u32 = 16;
/// What is meant for one worker only. It is called once: by that worker, or without one if the
/// seat's thread has ended and no other one comes.
pub(crate) type Mail = MailOf<'static>;
/// Mail that borrows.
pub(crate) type MailOf<'a> = Box<dyn FnOnce(&Common, Option<&Worker>) + Send + 'a>;

pub(crate) type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;
pub(crate) type IndexHandler = dyn Fn(usize) + Send + Sync;

/// How a pool behaves, apart from its strategy and its threads.
pub(crate) struct Behaviour {
    pub(crate) wait: Wait,
    pub(crate) idle_spin_ns: u64,
    pub(crate) pinned: bool,
    pub(crate) compensates: bool,
    /// The program starts the threads, when the pool is built.
    pub(crate) foreign: bool,
    /// The thread that builds the pool has its first seat.
    pub(crate) guest: bool,
    pub(crate) names: Option<Mutex<Names>>,
    pub(crate) panic_handler: Option<Box<PanicHandler>>,
    pub(crate) start_handler: Option<Box<IndexHandler>>,
    pub(crate) exit_handler: Option<Box<IndexHandler>>,
}

/// What belongs to one worker and is seen by others.
pub(crate) struct Seat {
    worker: CachePadded<Worker>,
    pub(crate) orders: AtomicU32,
    mail: Mutex<VecDeque<Mail>>,
    /// By what number the kernel's records of its thread are asked for, and one more; 0 for a seat
    /// without a thread, [`UNSEEN`] without records.
    pub(crate) presence: AtomicUsize,
    pub(crate) counters: Counters,
    /// Futures that began to wait here.
    pub(crate) futures: Held,
    /// Tasks of its scopes, if it runs no others while it waits.
    pub(crate) listed: Listed,
    /// What its worker has created by `spawn_fifo`, outside of scopes.
    fifo: Fifo<Detached>,
    /// Whether it has blocked in a task.
    pub(crate) suspicion: Suspicion,
}

pub(crate) const UNSEEN: usize = usize::MAX;

// SAFETY: `worker` is touched by the thread that has the seat alone, but for its forks, which
// threads may share; all else is atomic, or has its lock.
unsafe impl Sync for Seat {}
// SAFETY: as above; a worker that no thread has begins anew on the next one.
unsafe impl Send for Seat {}

impl Seat {
    /// The forks of the seat's worker.
    #[inline]
    pub(crate) fn forks(&self) -> &Forks<Fork> {
        &self.worker.forks
    }

    /// The seat's worker, which has begun.
    ///
    /// # Safety
    ///
    /// The seat is the calling thread's.
    pub(crate) unsafe fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Begins the life of the seat's worker, in the pool of `core`.
    ///
    /// # Safety
    ///
    /// The seat is the caller's alone for as long as it uses the worker, and `core` lives longer.
    pub(crate) unsafe fn begin_worker(&self, core: *const dyn Core) -> &Worker {
        // SAFETY: the caller's promise.
        unsafe { self.worker.begin(core) };
        &self.worker
    }

    /// Whether its thread runs, or would if it had a processor. Yes, if nobody can tell.
    fn can_run(&self) -> bool {
        // Relaxed: a hint.
        match self.presence.load(Ordering::Relaxed) {
            0 => false,
            UNSEEN => true,
            number => presence::of(number - 1) != Presence::Blocked,
        }
    }
}

/// What is shared whatever the strategy.
pub(crate) struct Common {
    pub(crate) sleeping: Sleeping,
    seats: Box<[CachePadded<Seat>]>,
    /// Seats below have had a thread.
    used: AtomicUsize,
    pub(crate) behaviour: Behaviour,
    /// Processors that the process may use, asked for once.
    pub(crate) processors: usize,
    /// How tasks that have not begun end: a [`Fate`].
    discards: AtomicU32,
    pub(crate) panics: AtomicUsize,
    /// What threads outside of the pool have created by `spawn_fifo`.
    outside_fifo: Fifo<Detached>,
    pub(crate) closing: Closing,
    pub(crate) ending: Ending,
    /// Threads that take part.
    pub(crate) members: AtomicUsize,
    /// Spares that are to go back to sleep: those that serve beyond the leases. A hint; the roster
    /// knows.
    pub(crate) surplus: AtomicU32,
    pub(crate) first_spare: usize,
    pub(crate) roster: Mutex<Roster>,
    /// If workers that block are to be compensated.
    pub(crate) lookout: Option<Lookout>,
}

impl Common {
    pub(crate) fn new(seats: usize, behaviour: Behaviour, roster: Roster) -> Self {
        let seat = |index| {
            CachePadded::new(Seat {
                worker: CachePadded::new(Worker::vacant(index)),
                orders: AtomicU32::fresh(0),
                mail: Mutex::new(VecDeque::new()),
                presence: AtomicUsize::fresh(0),
                counters: Counters::new(),
                futures: Held::new(),
                listed: Listed::new(),
                fifo: Fifo::new(),
                suspicion: Suspicion::new(),
            })
        };
        Self {
            sleeping: Sleeping::new(),
            seats: (0..seats).map(seat).collect(),
            used: AtomicUsize::fresh(0),
            lookout: behaviour.compensates.then(Lookout::new),
            behaviour,
            processors: topology::parallelism(),
            discards: AtomicU32::fresh(0),
            panics: AtomicUsize::fresh(0),
            outside_fifo: Fifo::new(),
            closing: Closing::new(),
            ending: Ending::new(),
            members: AtomicUsize::fresh(0),
            surplus: AtomicU32::fresh(0),
            first_spare: roster.regular,
            roster: Mutex::new(roster),
        }
    }

    pub(crate) fn wait(&self) -> Wait {
        self.behaviour.wait
    }

    pub(crate) fn seat(&self, index: usize) -> &Seat {
        &self.seats[index]
    }

    /// Returns the queue for what is created by `spawn_fifo`: by the worker of a seat, or outside.
    pub(crate) fn fifo(&self, creator: Option<usize>) -> &Fifo<Detached> {
        creator.map_or(&self.outside_fifo, |seat| &self.seat(seat).fifo)
    }

    /// Whether a spare thread has ever been started.
    pub(crate) fn has_started_spares(&self) -> bool {
        // Relaxed: a worker that waits for the fork of a spare has been told of the theft, and so
        // of the thread; for others it is a hint.
        self.used.load(Ordering::Relaxed) > self.first_spare
    }

    pub(crate) fn seats(&self) -> usize {
        self.seats.len()
    }

    /// What becomes of a task that has not begun.
    pub(crate) fn fate(&self) -> Fate {
        // Relaxed: nothing is published with it.
        if self.discards.load(Ordering::Relaxed) == 0 { Fate::Run } else { Fate::Dropped }
    }

    /// From now on tasks that have not begun are dropped.
    pub(crate) fn discard(&self) {
        // Relaxed: as above.
        self.discards.store(1, Ordering::Relaxed);
    }

    /// Somebody's task or handler panicked, and nobody waits for it.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        // Relaxed: statistics.
        self.panics.fetch_add(1, Ordering::Relaxed);
        let handled =
            panic::catch_unwind(AssertUnwindSafe(|| match &self.behaviour.panic_handler {
                Some(handler) => handler(payload),
                None => drop(payload),
            }));
        if let Err(second) = handled {
            // Relaxed: statistics.
            self.panics.fetch_add(1, Ordering::Relaxed);
            // Its drop may panic as well; there is nobody left to tell.
            core::mem::forget(second);
        }
    }

    /// Runs `body`, whose panic concerns nobody who waits.
    pub(crate) fn contain(&self, body: impl FnOnce()) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
            self.panicked(payload);
        }
    }

    /// Puts `mail` into the seat's box and tells its worker.
    pub(crate) fn send(&self, seat: usize, mail: Mail) {
        self.seat(seat).mail.lock().push_back(mail);
        self.order(seat, MAIL);
    }

    /// The seat's thread has ended, and no other one comes: the seat gets no mail from now on, and
    /// what it has got is told so.
    pub(crate) fn abandon(&self, seat: usize) {
        self.roster.lock().abandoned[seat] = true;
        loop {
            let mail = self.seat(seat).mail.lock().pop_front();
            match mail {
                Some(mail) => mail(self, None),
                None => break,
            }
        }
    }

    /// What the seat's thread is to be called. Not under the roster's lock: it calls what is the
    /// user's.
    pub(crate) fn name(&self, seat: usize) -> io::Result<Option<String>> {
        self.behaviour.names.as_ref().map(|names| roster::name(names, seat)).transpose()
    }

    /// Tells the seat's worker to end.
    pub(crate) fn dismiss(&self, seat: usize) {
        self.order(seat, LEAVE);
    }

    /// Takes back that the seat's worker is to end. False, if it ends already.
    pub(crate) fn retain(&self, seat: usize) -> bool {
        // Relaxed: the roster's lock is held, and `may_leave` decides by the word alone.
        let retained =
            self.seat(seat).orders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |orders| {
                (orders & LEFT == 0).then_some(orders & !LEAVE)
            });
        retained.is_ok()
    }

    /// Whether the worker, which has seen that it is to end, does. Not while it has mail: that was
    /// sent to a member, perhaps since it looked.
    pub(crate) fn may_leave(&self, worker: &Worker) -> bool {
        // Relaxed: as in `retain`.
        let left = self.seat(worker.index()).orders.fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |orders| (orders & (LEAVE | MAIL) == LEAVE).then_some(orders | LEFT),
        );
        left.is_ok()
    }

    /// Clears what the last thread of this seat was told, for the next, or for itself if it begins
    /// again. The roster's lock is held.
    pub(crate) fn reset(&self, seat: usize) {
        // Relaxed: the last thread is through, and the next is not started. Mail stays: it is for
        // the seat.
        self.seat(seat).orders.fetch_and(MAIL, Ordering::Relaxed);
    }

    /// Whether the seat's thread has left, and its seat is a member's again, or was for long enough
    /// to get mail. The roster's lock is held.
    pub(crate) fn is_wanted_again(&self, roster: &Roster, seat: usize) -> bool {
        // Relaxed: whoever refused to take `LEAVE` back, or sent mail, had the lock.
        let orders = self.seat(seat).orders.load(Ordering::Relaxed);
        orders & LEFT != 0 && (seat < roster.target || orders & MAIL != 0)
    }

    pub(crate) fn order(&self, seat: usize, order: u32) {
        // Release: pairs with the Acquire of `orders`.
        self.seat(seat).orders.fetch_or(order, Ordering::Release);
        self.sleeping.tell_only(seat);
    }

    pub(crate) fn orders(&self, worker: &Worker) -> u32 {
        // Acquire: pairs with the Release of `order`.
        self.seat(worker.index()).orders.load(Ordering::Acquire)
    }

    pub(crate) fn has_mail(&self, worker: &Worker) -> bool {
        self.orders(worker) & MAIL != 0
    }

    /// Runs what is meant for this worker only.
    #[inline]
    pub(crate) fn run_mail(&self, worker: &Worker) {
        let orders = self.orders(worker);
        if orders & LENT != 0 {
            self.come_back(worker.index());
        }
        if orders & MAIL != 0 {
            self.run_mail_now(worker);
        }
    }

    /// The worker may sleep from now on, and it is not for blocking in a task.
    pub(crate) fn away(&self, worker: &Worker) -> Option<Away<'_>> {
        self.seat_away(worker.index())
    }

    /// The same by the number of the calling worker's seat. Nothing where nobody looks for it.
    pub(crate) fn seat_away(&self, seat: usize) -> Option<Away<'_>> {
        self.lookout.is_some().then(|| Away::from(self.seat(seat)))
    }

    #[cold]
    fn run_mail_now(&self, worker: &Worker) {
        let seat = self.seat(worker.index());
        // Before the box is emptied, so that what comes later is not forgotten. Relaxed: the box
        // has a lock.
        seat.orders.fetch_and(!MAIL, Ordering::Relaxed);
        loop {
            let mail = seat.mail.lock().pop_front();
            match mail {
                Some(mail) => mail(self, Some(worker)),
                None => break,
            }
        }
    }

    /// Spins until `done`, for as long as it is worth to spin.
    pub(crate) fn spin_until(&self, done: impl Fn() -> bool) -> bool {
        self.spin(|| done().then_some(())).is_some()
    }

    /// Repeats `attempt` for as long as an idle worker should spin before it sleeps: not at all, if
    /// more workers are awake than there are processors.
    ///
    /// Yields between two attempts if the pool has a worker for each processor: the thread that the
    /// worker waits for may need this one.
    pub(crate) fn spin<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
        let begin = clock::now();
        let mut yields = false;
        let attempt = || {
            // Not before the first attempt.
            if core::mem::replace(&mut yields, self.first_spare >= self.processors) {
                machine::thread::yield_now();
            }
            attempt()
        };
        wait::retry_for(attempt, 50..1_000, || {
            !self.crowded() && clock::now().nanos_since(begin) < self.behaviour.idle_spin_ns
        })
    }

    /// Whether a worker that spins may keep one from its processor that has work: whether more
    /// workers can run than there are processors.
    fn crowded(&self) -> bool {
        let awake = self.active().saturating_sub(self.sleeping.asleep());
        // Some of those awake may be blocked; the kernel's records tell, where there are any.
        awake > self.processors
            && self.seats.iter().filter(|seat| seat.can_run()).count() > self.processors
    }

    /// Returns whether some worker has something to do. A guest may have, and is not waited for.
    pub(crate) fn others_work(&self) -> bool {
        self.active() > self.sleeping.idle() + usize::from(self.behaviour.guest)
    }

    /// Returns whether a seat is that of the thread that has built the pool.
    #[inline]
    pub(crate) fn is_guest(&self, seat: usize) -> bool {
        self.behaviour.guest && seat == guest::SEAT
    }

    /// The seat has a thread.
    pub(crate) fn use_seat(&self, seat: usize) {
        // Relaxed: the forks that the seat's worker makes, it makes after this (see `forks.rs`).
        self.used.fetch_max(seat + 1, Ordering::Relaxed);
    }

    /// Seats that have had a thread.
    fn used_seats(&self) -> &[CachePadded<Seat>] {
        // Relaxed: as above.
        &self.seats[..self.used.load(Ordering::Relaxed)]
    }

    /// Takes a fork for this worker: another one's, or, if there is none, its own oldest, whose
    /// first half waits below on the worker's stack.
    pub(crate) fn steal_fork(&self, worker: &Worker) -> Option<Stolen> {
        let used = self.used_seats().len();
        let start = worker.random() as usize % used.max(1);
        let own = worker.index();
        let others = (start..used).chain(0..start).filter(|&victim| victim != own);
        others.chain([own]).find_map(|victim| worker.steal_fork_of(victim))
    }

    /// Whether [`steal_fork`](Self::steal_fork) may find something. Exact for a worker that has
    /// said that it goes to sleep and has called `heavy` since; a fork to which a thief is on its
    /// way does not count (see `forks.rs`).
    pub(crate) fn has_forks(&self) -> bool {
        self.used_seats().iter().any(|seat| seat.forks().ready_after_barrier() > 0)
    }

    /// Whether somebody asks where workers are: there may be more of them than processors, so that
    /// it matters which can run; or those that block are compensated.
    pub(crate) fn are_seen(&self) -> bool {
        self.first_spare > self.processors || self.lookout.is_some()
    }

    /// Returns the number of threads, spare ones apart. Takes the roster's lock.
    pub(crate) fn threads(&self) -> usize {
        self.roster.lock().target
    }

    /// Threads that take part.
    fn active(&self) -> usize {
        // Relaxed: a hint.
        self.members.load(Ordering::Relaxed)
    }

    /// Aborts the futures that wait, and lets no more begin to wait.
    pub(crate) fn abort_futures(&self) {
        for seat in &self.seats {
            seat.futures.close();
        }
    }

    /// Whether no thread is to begin any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closing.is_closed()
    }

    /// Says how many spares are too many. The roster's lock is held.
    pub(crate) fn note_surplus(&self, roster: &Roster) {
        let surplus = roster.serving.saturating_sub(roster.leases);
        // Relaxed: a hint.
        self.surplus.store(surplus as u32, Ordering::Relaxed);
    }

    /// Whether the worker is a spare, and one too many.
    #[inline]
    pub(crate) fn is_surplus(&self, worker: &Worker) -> bool {
        // Relaxed: a hint; `rest` asks again under the roster's lock.
        worker.index() >= self.first_spare && self.surplus.load(Ordering::Relaxed) > 0
    }
}
