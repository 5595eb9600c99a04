//! A thread of a pool, as the watch knows it.

use std::fmt;

use stanchion_machine::atomic::{AtomicU64, Ordering};
use stanchion_machine::clock::monotonic;
use stanchion_machine::presence::switches::{Refused, Ring};

use crate::history::{History, Parks};
use crate::polls::Polls;
use crate::records::OffProcessor;
use crate::system;

/// The pool that a worker belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Pool {
    /// A runtime of tokio.
    Tokio,
    /// A pool of rayon.
    Rayon,
    /// A pool of `stanchion-threadpool`.
    Threadpool,
    /// Another pool, by its name.
    Other(&'static str),
}

impl Pool {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            Self::Rayon => "rayon",
            Self::Threadpool => "threadpool",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The number of the next worker.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A thread of a pool.
#[derive(Debug)]
pub(crate) struct Worker {
    /// A number that no other worker of this process had.
    pub(crate) number: u64,
    /// Its pool.
    pub(crate) pool: Pool,
    /// Its index in the pool, if the pool tells it.
    pub(crate) index: Option<usize>,
    /// The kernel's number of the thread.
    pub(crate) thread: Option<u32>,
    /// The name of the thread.
    pub(crate) name: String,
    /// True if the pool tells when it parks.
    pub(crate) tells_parks: bool,
    /// Its own account of its parks. It always reads as awake if the pool does not tell.
    pub(crate) history: History,
    /// Its polls, if the runtime tells them.
    pub(crate) polls: Polls,
    /// Its switch records, or why there are none. `None` if they were not asked for.
    pub(crate) ring: Option<Result<Ring, Refused>>,
}

impl Worker {
    /// Describes the calling thread, which is awake.
    pub(crate) fn of_this_thread(
        pool: Pool,
        index: Option<usize>,
        tells_parks: bool,
        with_records: bool,
    ) -> Self {
        let ring = with_records.then(Ring::of_this_thread);
        let first_record = ring.as_ref().and_then(|ring| ring.as_ref().ok()).map_or(0, Ring::count);
        let parks = Parks { changed_at: monotonic(), first_record, ..Parks::default() };
        Self {
            // Relaxed: only that each number is given once.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            pool,
            index,
            thread: system::this_thread(),
            name: std::thread::current().name().unwrap_or("unnamed").to_owned(),
            tells_parks,
            history: History::new(parks),
            polls: Polls::new(),
            ring,
        }
    }

    /// Returns its switch records, if it has any.
    pub(crate) fn records(&self) -> Option<&Ring> {
        self.ring.as_ref()?.as_ref().ok()
    }

    /// Notes that it is about to park. Called by its own thread.
    pub(crate) fn park(&self) {
        let now = monotonic();
        self.history.change(|parks| {
            if parks.is_parked == 1 {
                return;
            }
            if let Some(ring) = self.records() {
                let (off, _) = OffProcessor::between(ring, parks.first_record, ring.count());
                parks.blocked += off.blocked;
                parks.preempted += off.preempted;
                parks.lost += off.lost;
            }
            parks.awake += now.saturating_sub(parks.changed_at);
            parks.parks += 1;
            parks.is_parked = 1;
            parks.changed_at = now;
        });
    }

    /// Notes that it has been unparked. Called by its own thread.
    pub(crate) fn unpark(&self) {
        let now = monotonic();
        self.history.change(|parks| {
            if parks.is_parked == 0 {
                return;
            }
            parks.is_parked = 0;
            parks.changed_at = now;
            parks.first_record = self.records().map_or(0, Ring::count);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parks_and_the_time_awake_are_counted() {
        let worker = Worker::of_this_thread(Pool::Other("test"), Some(3), true, false);
        let begun = worker.history.read().unwrap();
        assert_eq!((begun.is_parked, begun.parks, begun.awake), (0, 0, 0));
        worker.park();
        let parked = worker.history.read().unwrap();
        assert_eq!((parked.is_parked, parked.parks), (1, 1));
        assert_eq!(parked.awake, parked.changed_at - begun.changed_at);
        assert_eq!(parked.awake_until(u64::MAX), parked.awake);
        // A second notice of the same changes nothing.
        worker.park();
        assert_eq!(worker.history.read().unwrap(), parked);
        worker.unpark();
        let awake = worker.history.read().unwrap();
        assert_eq!((awake.is_parked, awake.parks, awake.awake), (0, 1, parked.awake));
        assert_eq!(awake.awake_until(awake.changed_at + 5), parked.awake + 5);
    }
}
