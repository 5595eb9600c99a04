//! What the members of a barrier can see of each other: who has not come, and whether that one is on a processor.
//!
//! A member has a line of its own and writes there which thread it is, where it was last, and to which phase it has come. Why not a bit mask of those
//! that have come: it would be a second word that all write, and be asked for in few of the waits; these lines are written by their owners, and read
//! only by a waiter that has looked in vain for a while.
//!
//! Two sources tell whether a thread is on a processor:
//!
//! | source | tells | costs |
//! | --- | --- | --- |
//! | where it last was, if that is the processor of who asks | that it is off | nothing |
//! | [`machine::presence`], if its thread is registered | all | 1.3 µs more for each time that it leaves or takes a processor |
//!
//! The price of the second is what `cargo bench -p benches --bench gang -- switch` prints: a yield to another thread takes 1.4 µs, and 2.7 µs if both
//! are seen. So only those threads are registered here that may run on one processor only. They leave it seldom unless another program takes it, which
//! nothing else would tell; and if all shared one, the first source would. Others are seen if they register themselves.
//!
//! # Orderings
//!
//! All Relaxed: what is seen is out of date anyway, and decides only how somebody waits.

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::presence::{self, Presence};
use machine::thread;
use machine::topology::{self, CachePadded};

/// A line for each member.
pub(super) struct Members(Box<[CachePadded<Line>]>);

struct Line {
    /// The index of its thread; [`NOBODY`] if it has none.
    thread: AtomicU32,
    /// The processor that it arrived on lately.
    processor: AtomicU32,
    /// The phase that it has come to, modulo 2^32.
    phase: AtomicU32,
}

/// Neither a thread nor a processor.
const NOBODY: u32 = u32::MAX;

/// A member's own copy of its line, so that it need not write what has not changed.
#[derive(Debug)]
pub(super) struct Announced {
    thread: u32,
    processor: u32,
}

impl Announced {
    pub(super) const NOTHING: Self = Self { thread: NOBODY, processor: NOBODY };
}

impl Members {
    pub(super) fn new(count: usize) -> Self {
        let line = |_| {
            CachePadded::new(Line {
                thread: AtomicU32::fresh(NOBODY),
                processor: AtomicU32::fresh(NOBODY),
                phase: AtomicU32::fresh(u32::MAX),
            })
        };
        Self((0..count).map(line).collect())
    }

    /// The calling thread is that member, and has come to that phase.
    #[inline]
    pub(super) fn announce(&self, index: usize, announced: &mut Announced, phase: u64) {
        let line = &self.0[index];
        let thread = number(thread::index());
        if thread != announced.thread {
            announced.thread = thread;
            line.thread.store(thread, Ordering::Relaxed);
            be_seen();
        }
        let processor = number(topology::current());
        if processor != announced.processor {
            announced.processor = processor;
            line.processor.store(processor, Ordering::Relaxed);
        }
        line.phase.store(phase as u32, Ordering::Relaxed);
    }

    /// Where the one is of all who have not come to that phase that is furthest from coming.
    #[cold]
    pub(super) fn missing(&self, phase: u64) -> Presence {
        let here = topology::current().map(|processor| processor as u32);
        let mut furthest = Presence::Running;
        for line in &self.0 {
            if line.phase.load(Ordering::Relaxed) == phase as u32 {
                continue;
            }
            match line.presence(here) {
                // Nothing is more urgent: perhaps it waits for this processor.
                Presence::Preempted => return Presence::Preempted,
                Presence::Running => {}
                presence => furthest = presence,
            }
        }
        furthest
    }
}

impl Line {
    fn presence(&self, here: Option<u32>) -> Presence {
        let thread = self.thread.load(Ordering::Relaxed);
        let presence = match usize::try_from(thread) {
            Ok(thread) if thread != NOBODY as usize => presence::of(thread),
            _ => Presence::Unknown,
        };
        let last = self.processor.load(Ordering::Relaxed);
        if presence == Presence::Unknown && last != NOBODY && Some(last) == here {
            return Presence::Preempted;
        }
        presence
    }
}

fn number(number: Option<usize>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(NOBODY)
}

machine::thread_local! {
    /// The thread's registration; kept until it ends.
    static REGISTRATION: core::cell::RefCell<Option<presence::Registration>> = core::cell::RefCell::new(None);
}

/// Makes the calling thread visible, until it ends, if it may run on one processor only. Does nothing where that cannot be had.
#[cold]
fn be_seen() {
    if topology::processors().len() > 1 {
        return;
    }
    let _ = REGISTRATION.try_with(|mine| {
        if let Ok(mut mine) = mine.try_borrow_mut()
            && mine.is_none()
        {
            *mine = presence::register().ok();
        }
    });
}
