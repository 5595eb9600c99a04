//! Where threads wait that any worker may run: those that have not begun, and those that may migrate.
//!
//! A strategy of `stanchion_threadpool`, in whose blocks lie handles of threads; its type is forgotten here, so that a runtime has none.

use stanchion_threadpool::{Place, Plan, Strategy, Task, Told};

use crate::thread::header::Thread;

/// A queue of threads, by whichever strategy.
pub(crate) trait ReadyQueue: Send + Sync {
    /// Makes a thread ready; says who should be told.
    fn put(&self, place: Option<&Place>, thread: Thread, last: bool) -> Told;

    /// Takes one, and gives back the block of the one before.
    fn take(&self, place: &Place, spent: &mut Option<Task>) -> Option<Thread>;

    /// Whether [`take`](Self::take) may find one.
    fn is_ready(&self, place: &Place) -> bool;

    /// Whether [`take`](Self::take) may find one without taking it from another place.
    fn is_ready_here(&self, place: &Place) -> bool;

    /// Who should be told of what the last take has moved.
    fn moved(&self, place: &Place) -> Option<Told>;

    /// The place is idle from now on until it takes.
    fn idle(&self, place: &Place);

    /// The place takes no more.
    fn leave(&self, place: &Place) -> Option<Told>;

    /// How many there are, as far as is known.
    fn len(&self) -> usize;
}

/// A strategy as a queue of threads.
pub(crate) struct StrategyQueue<S>(S);

impl<S: Strategy> StrategyQueue<S> {
    /// One for so many slots, of which the first `active` are always there.
    pub(crate) fn new(places: usize, active: usize) -> Self {
        Self(S::new(&Plan { active, queues: Some(active), ..Plan::new(places) }))
    }
}

impl<S: Strategy> ReadyQueue for StrategyQueue<S> {
    fn put(&self, place: Option<&Place>, thread: Thread, last: bool) -> Told {
        let mut thread = Some(thread);
        let fill = |task: &Task| {
            let words = task.words().cast::<Option<Thread>>();
            // SAFETY: the block is this strategy's to fill, and large and aligned enough for a handle, which is one word.
            unsafe { words.write(thread.take()) };
        };
        match last {
            true => self.0.create_last(place, fill),
            false => self.0.create(place, fill),
        }
    }

    fn take(&self, place: &Place, spent: &mut Option<Task>) -> Option<Thread> {
        let task = self.0.next(place, spent.take(), &mut None)?;
        let words = task.words().cast::<Option<Thread>>();
        // SAFETY: filled by `put`, and read once.
        let thread = unsafe { words.read() };
        *spent = Some(task);
        thread
    }

    fn is_ready(&self, place: &Place) -> bool {
        self.0.is_ready(place)
    }

    fn is_ready_here(&self, place: &Place) -> bool {
        self.0.is_ready_here(place)
    }

    fn moved(&self, place: &Place) -> Option<Told> {
        self.0.moved(place)
    }

    fn idle(&self, place: &Place) {
        self.0.idle(place);
    }

    fn leave(&self, place: &Place) -> Option<Told> {
        self.0.leave(place)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
