//! The threads of a run by number, and the record of what they did.
//!
//! Each change of what a thread does goes through [`enter`](Threads::enter) or
//! [`spend`](Threads::spend). So the times of a thread add up to its life, and statistics, timeline
//! and counts by word agree.

use super::thread::{Status, Thread, ThreadId, Wait};
use crate::Time;
use crate::statistics::{Activity, ThreadStatistics, Words};
use crate::timeline::Timeline;
use core::ops::{Index, IndexMut};

/// Calls that take no time, one after the other, that are free.
const FREE_GLANCES: u32 = 16;
/// The time of each after those.
const GLANCE: Time = Time::nanos(20);

/// The threads of a run.
#[derive(Default)]
pub(crate) struct Threads {
    /// The threads, by number.
    list: Vec<Thread>,
    /// The time when the last thread so far ended or was frozen.
    elapsed: Time,
    /// The timeline, if it is recorded.
    timeline: Option<Timeline>,
    /// The counts by word, if words are counted.
    pub(crate) words: Option<Words>,
}

impl Index<ThreadId> for Threads {
    type Output = Thread;

    #[inline]
    fn index(&self, id: ThreadId) -> &Thread {
        &self.list[id.index()]
    }
}

impl IndexMut<ThreadId> for Threads {
    #[inline]
    fn index_mut(&mut self, id: ThreadId) -> &mut Thread {
        &mut self.list[id.index()]
    }
}

impl Threads {
    /// None yet. Records a timeline if that is asked for, and counts that many unlabelled words.
    pub(crate) fn new(timeline: bool, words: Option<usize>) -> Self {
        Self {
            timeline: timeline.then(Timeline::default),
            words: words.map(Words::new),
            ..Self::default()
        }
    }

    /// Returns the number of threads that the run has made.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The threads, in the order in which they were made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.list.iter()
    }

    /// Returns the thread of that number, if there is one.
    pub(crate) fn get(&self, number: usize) -> Option<&Thread> {
        self.list.get(number)
    }

    /// Returns the thread of that number, if there is one.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Thread> {
        self.list.get_mut(number)
    }

    /// Makes a thread, which can run once its maker has spent the time to make it.
    pub(crate) fn create(
        &mut self,
        name: Option<String>,
        pinned: Option<usize>,
        now: Time,
    ) -> ThreadId {
        let id = ThreadId::new(self.list.len());
        // What the statistics keep is a copy, outside the run's memory, which they would keep else.
        let copy = name.clone();
        let mut thread = Thread::new(name, pinned, now);
        thread.statistics.name = copy;
        thread.statistics.life.0 = now;
        self.list.push(thread);
        id
    }

    /// Begins a new stretch of `id`'s life, in `status`.
    pub(crate) fn enter(&mut self, id: ThreadId, status: Status, at: Time) {
        let thread = &mut self.list[id.index()];
        let waited = match thread.status {
            Status::Ready | Status::Stopped => Some(Activity::Ready),
            Status::Blocked => Some(Activity::Blocked),
            Status::Running | Status::Spinning | Status::Ended => None,
        };
        let since = thread.since;
        if let (Some(words), Wait::Parked(word), Status::Blocked) =
            (&mut self.words, thread.wait, thread.status)
        {
            words.parked(word, at - since);
        }
        if let Some(activity) = waited {
            thread.statistics.times.add(activity, at - since);
            if let Some(timeline) = &mut self.timeline {
                timeline.add(id.index(), None, activity, (since, at));
            }
        }
        thread.status = status;
        thread.since = at;
        thread.stretch += 1;
    }

    /// Records that `id` did `activity` on its processor from its own time until `end`, which is
    /// its own time now.
    #[inline]
    pub(crate) fn spend(&mut self, id: ThreadId, activity: Activity, end: Time) {
        let thread = &mut self.list[id.index()];
        let start = thread.time;
        thread.time = end;
        thread.statistics.times.add(activity, end - start);
        if let Some(timeline) = &mut self.timeline {
            timeline.add(id.index(), Some(thread.processor), activity, (start, end));
        }
    }

    /// Charges a call of `id` that takes no time. A loop of such calls must not stand still: a few
    /// are free, each after those takes as long as reading a clock does on a machine of today.
    /// Returns whether it took time.
    pub(crate) fn glance(&mut self, id: ThreadId) -> bool {
        let thread = &mut self.list[id.index()];
        let (at, times) = thread.glances;
        let times = if at == thread.time { times.saturating_add(1) } else { 0 };
        let takes = times >= FREE_GLANCES;
        let end = thread.time + if takes { GLANCE } else { Time::ZERO };
        thread.glances = (end, times);
        self.spend(id, Activity::Useful, end);
        takes
    }

    /// Ends the life of `id` in the statistics: it has ended, or never runs again.
    pub(crate) fn close_life(&mut self, id: ThreadId, at: Time) {
        self[id].statistics.life.1 = at;
        self.elapsed = self.elapsed.max(at);
    }

    /// Returns the time when the last thread so far ended or was frozen.
    pub(crate) fn elapsed(&self) -> Time {
        self.elapsed
    }

    /// Returns whether no thread is left that could do anything.
    pub(crate) fn have_ended(&self) -> bool {
        self.list.iter().all(|thread| thread.status == Status::Ended || thread.frozen)
    }

    /// Takes the record apart, when all threads have ended.
    pub(crate) fn into_record(self) -> (Vec<ThreadStatistics>, Option<Words>, Option<Timeline>) {
        let threads = self.list.into_iter().map(|thread| thread.statistics).collect();
        (threads, self.words, self.timeline)
    }
}
