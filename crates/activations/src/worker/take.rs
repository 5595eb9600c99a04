//! How a carrier uses the runtime's ready queue, and when it takes from it what lies at other seats
//! (`thrift.rs`).

use machine::clock;
use stanchion_threadpool::{Place, Task, Told};

use crate::thread::priority::Priority;
use crate::processors::slot::Hold;
use crate::thread::header::Thread;

use super::scheduler_loop::Local;

/// A strategy may leave another seat its last thread for the first few looks, and who has it may be
/// in its queue.
const TRIES: u32 = 8;

/// So often a carrier tries to take a thread of the usual priority before one of low priority,
/// while such are made ready beside it.
const ROUNDS: u32 = 3;

impl Local {
    /// A thread of the usual priority is ready, which any carrier may run.
    #[inline]
    pub(super) fn put_ready(&self, thread: Thread, last: bool) {
        let shared = &self.shared;
        let (told, own) = self.with_hold(|hold| {
            let own = hold.is_some();
            (shared.ready_queue().put(hold.map(|hold| &hold.place), thread, last), own)
        });
        shared.tell_of(told, own);
    }

    #[inline]
    pub(super) fn take_ready(&self) -> Option<Thread> {
        self.take_by(|place, spent| {
            let ready = self.shared.ready_queue();
            if self.shared.seats() == 1 || ready.is_ready_here(place) {
                ready.take(place, spent)
            } else {
                self.take_elsewhere(place, spent)
            }
        })
    }

    /// Takes a thread of low priority, or one of the usual priority: that comes first even if it
    /// lies where taking it does not pay.
    #[cold]
    pub(super) fn take_low(&self) -> Option<Thread> {
        let unusual = self.shared.unusual();
        let either = (0..ROUNDS).find_map(|_| {
            self.take_ready_anywhere()
                .or_else(|| unusual.take_unless(Priority::Low, || self.is_any_ready()))
        });
        // What is ready elsewhere cannot be taken now.
        either.or_else(|| unusual.take(Priority::Low))
    }

    /// As [`take_ready`](Self::take_ready), whether it pays or not.
    fn take_ready_anywhere(&self) -> Option<Thread> {
        let ready = self.shared.ready_queue();
        self.take_by(|place, spent| {
            (0..TRIES).find_map(
                |_| {
                    if ready.is_ready(place) { ready.take(place, spent) } else { None }
                },
            )
        })
    }

    /// Takes one at its seat, in that way; others are told of what that has moved here.
    #[inline]
    fn take_by(
        &self,
        take: impl FnOnce(&Place, &mut Option<Task>) -> Option<Thread>,
    ) -> Option<Thread> {
        let (thread, moved) = self.with_hold(|hold| match hold {
            Some(Hold { place, spent }) => {
                (take(place, spent), self.shared.ready_queue().moved(place))
            }
            None => (None, None),
        });
        if let Some(told) = moved {
            self.shared.tell_of(told, true);
        }
        thread
    }

    /// There is nothing here: takes what lies at another seat, if that has been paying.
    #[cold]
    fn take_elsewhere(&self, place: &Place, spent: &mut Option<Task>) -> Option<Thread> {
        let started = clock::now();
        if !self.thrift.may_take(started) {
            return None;
        }
        let thread = self.shared.ready_queue().take(place, spent);
        self.thrift.has_tried(started, thread.is_some());
        thread
    }

    /// Whether there is something ready that any carrier may run, wherever it lies.
    pub(super) fn is_any_ready(&self) -> bool {
        let ready = self.shared.ready_queue();
        self.with_hold(|hold| hold.is_some_and(|Hold { place, .. }| ready.is_ready(place)))
    }

    /// Whether there is something ready that it would take.
    pub(super) fn may_take_ready(&self) -> bool {
        let ready = self.shared.ready_queue();
        self.with_hold(|hold| {
            hold.is_some_and(|Hold { place, .. }| {
                ready.is_ready(place)
                    && (ready.is_ready_here(place) || self.thrift.pause().is_none())
            })
        })
    }

    /// It was woken, and goes on with one thread: what else there is to do, and to look at, is
    /// another's.
    ///
    /// Why: who makes something ready wakes one sleeper. If that finds something of its own first,
    /// the others sleep beside what they could do.
    pub(super) fn pass_on(&self) {
        let shared = &self.shared;
        if shared.reserve().waiting() > 0 || shared.unusual().any() || shared.is_time_unwatched() {
            shared.tell(Told::Anyone(1));
        } else if self
            .with_hold(|hold| hold.is_some_and(|hold| shared.ready_queue().is_ready(&hold.place)))
        {
            shared.tell_of(Told::Anyone(1), true);
        }
    }
}
