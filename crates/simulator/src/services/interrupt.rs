//! Interrupts: a processor's thread has to leave at a moment that it could not know of.
//!
//! Elsewhere a thread runs ahead of the events while it computes, as far as its slice goes, as
//! nothing can stop it before. Where interrupts come, computing is an event of its own: the thread
//! is suspended until its end, and an interrupt finds it somewhere in between.
//!
//! | the thread | leaves |
//! | --- | --- |
//! | computes, pauses, or spins in its cache | at once |
//! | waits for the memory, or is being put on | when that is over, before its next access |
//!
//! Requests of [`keep`](crate::os::keep) are not heard then: they are about the end of slices.

use crate::Time;
use crate::scheduler::event::What;
use crate::scheduler::thread::{Status, ThreadId};
use crate::services::kernel::State;
use crate::statistics::Activity;
use crate::world::{suspend, with};

/// The activity of a thread that an interrupt can end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stretch {
    /// Nothing of that kind.
    None,
    /// It has done this since its own time.
    Open(Activity),
    /// It did, for so long: an interrupt ended it.
    Ended(Time),
}

/// The running thread does `activity` for `left`, or until its slice ends or an interrupt comes;
/// says for how long it did.
pub(crate) fn stretch(left: Time, activity: Activity) -> Time {
    let alone = with(|world, id| world.state.open(id, left, activity));
    if let Some(Some(done)) = alone {
        return done;
    }
    let begin = with(|world, id| world.state.thread(id).time).unwrap_or_default();
    suspend();
    with(|world, id| world.state.close(id, begin)).unwrap_or(left)
}

impl State {
    /// Begins a stretch. If nothing else can happen before its end, ends it at once and returns its
    /// length.
    fn open(&mut self, id: ThreadId, left: Time, activity: Activity) -> Option<Time> {
        let thread = &self.threads[id.index()];
        let begin = thread.time;
        let end = (begin + left).min(self.processors[thread.processor].slice_end.max(begin));
        if end < self.events.next_at() {
            self.spend(id, activity, end);
            return Some(end - begin);
        }
        let stretch = thread.stretch;
        self.threads[id.index()].open = Stretch::Open(activity);
        self.events.announce(end, What::Run(id, stretch));
        None
    }

    /// A stretch that began at `begin` is over, or was ended before.
    fn close(&mut self, id: ThreadId, begin: Time) -> Time {
        match core::mem::replace(&mut self.threads[id.index()].open, Stretch::None) {
            Stretch::Ended(done) => done,
            Stretch::None => Time::ZERO,
            Stretch::Open(activity) => {
                let end = self.now;
                self.spend(id, activity, end);
                end - begin
            }
        }
    }

    /// The thread of `processor` has to leave.
    pub(crate) fn interrupt(&mut self, processor: usize, at: Time) {
        let Some(id) = self.processors[processor].current else {
            return self.dispatch(processor, at);
        };
        self.processors[processor].slice_end = at.min(self.processors[processor].slice_end);
        let (status, begin) = (self.thread(id).status, self.thread(id).time);
        match (status, self.thread(id).open) {
            (Status::Spinning, _) if begin > at => self.announce_early_end(id, at),
            (Status::Spinning, _) => {
                self.interrupt_spinning(id, at);
                self.preempt(id, at);
            }
            (_, Stretch::Open(_)) if begin > at => {
                // It has run ahead, and is not there yet: it is to come back when it is, and to
                // notice.
                self.enter(id, Status::Running, begin);
                let stretch = self.thread(id).stretch;
                self.events.announce(begin, What::Run(id, stretch));
            }
            (_, Stretch::Open(activity)) => {
                self.spend(id, activity, at);
                self.threads[id.index()].open = Stretch::Ended(at - begin);
                self.preempt(id, at);
            }
            (_, Stretch::None | Stretch::Ended(_)) => {}
        }
    }
}
