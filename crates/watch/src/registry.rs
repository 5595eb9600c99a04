//! The list of workers, and the worker of the calling thread.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::worker::Worker;

/// The workers of a watch.
#[derive(Debug)]
pub(crate) struct Registry {
    /// The time awake from which a worker is reported, in nanoseconds.
    pub(crate) threshold: u64,
    /// True if workers make switch records.
    pub(crate) with_records: bool,
    /// The workers that live. Each thread adds and removes itself.
    workers: Mutex<Vec<Arc<Worker>>>,
}

/// The calling thread as a worker of a registry. Dropping it takes the thread off the list.
struct Entry {
    /// The registry.
    registry: Arc<Registry>,
    /// The worker.
    worker: Arc<Worker>,
    /// The guards of the thread that make it a worker.
    guards: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.registry.lock().retain(|worker| worker.number != self.worker.number);
    }
}

thread_local! {
    /// The entries of the calling thread. There is seldom more than one.
    static ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

impl Registry {
    /// Creates an empty list.
    pub(crate) fn new(threshold: Duration, with_records: bool) -> Self {
        let threshold = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
        Self { threshold, with_records, workers: Mutex::new(Vec::new()) }
    }

    /// Returns the workers of now, in the order in which they came.
    pub(crate) fn workers(&self) -> Vec<Arc<Worker>> {
        self.lock().clone()
    }

    /// Calls a function with the calling thread's worker. If the thread is not on the list,
    /// `create` describes it first. Does nothing in the last moments of a thread.
    pub(crate) fn with_mine(
        self: &Arc<Self>,
        create: impl FnOnce(bool) -> Worker,
        call: impl FnOnce(&Worker),
    ) {
        // An error: the thread's locals are gone, and the thread is off the list.
        let _ = ENTRIES.try_with(|entries| {
            let mut entries = entries.borrow_mut();
            let known = entries.iter().position(|entry| Arc::ptr_eq(&entry.registry, self));
            let known = known.unwrap_or_else(|| {
                let worker = Arc::new(create(self.with_records));
                self.lock().push(Arc::clone(&worker));
                entries.push(Entry { registry: Arc::clone(self), worker, guards: 0 });
                entries.len() - 1
            });
            call(&entries[known].worker);
        });
    }

    /// Calls a function with the calling thread's worker, if the thread is on the list.
    pub(crate) fn with_known(self: &Arc<Self>, call: impl FnOnce(&Worker)) {
        // An error: as above.
        let _ = ENTRIES.try_with(|entries| {
            let entries = entries.borrow();
            if let Some(entry) = entries.iter().find(|entry| Arc::ptr_eq(&entry.registry, self)) {
                call(&entry.worker);
            }
        });
    }

    /// Counts a guard of the calling thread, which `create` describes if it is not on the list.
    pub(crate) fn enter(self: &Arc<Self>, create: impl FnOnce(bool) -> Worker) {
        self.with_mine(create, |_| ());
        self.with_entry(|entry| entry.guards += 1);
    }

    /// Takes the calling thread off the list if its last guard ends. If the thread has left
    /// meanwhile, this does nothing.
    pub(crate) fn exit(self: &Arc<Self>) {
        let mut is_last = false;
        self.with_entry(|entry| {
            is_last = entry.guards == 1;
            entry.guards = entry.guards.saturating_sub(1);
        });
        if is_last {
            self.leave();
        }
    }

    /// Calls a function with the calling thread's entry, if the thread is on the list.
    fn with_entry(self: &Arc<Self>, call: impl FnOnce(&mut Entry)) {
        // An error: as above.
        let _ = ENTRIES.try_with(|entries| {
            let mut entries = entries.borrow_mut();
            let mine = |entry: &&mut Entry| Arc::ptr_eq(&entry.registry, self);
            if let Some(entry) = entries.iter_mut().find(mine) {
                call(entry);
            }
        });
    }

    /// Takes the calling thread off the list.
    pub(crate) fn leave(self: &Arc<Self>) {
        // An error: as above.
        let _ = ENTRIES.try_with(|entries| {
            entries.borrow_mut().retain(|entry| !Arc::ptr_eq(&entry.registry, self));
        });
    }

    /// Locks the list. A panic under the lock leaves a list that is whole.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Worker>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::worker::Pool;

    fn worker(with_records: bool) -> Worker {
        Worker::of_this_thread(Pool::Other("test"), None, true, with_records)
    }

    #[test]
    fn a_thread_is_listed_until_it_leaves_or_ends() {
        let registry = Arc::new(Registry::new(Duration::ZERO, false));
        registry.with_known(|worker| panic!("{worker:?}"));
        registry.with_mine(worker, |_| ());
        registry.with_mine(|_| unreachable!("it is listed"), Worker::park);
        assert_eq!(registry.workers().len(), 1);
        thread::scope(|scope| {
            scope.spawn(|| {
                registry.with_mine(worker, |_| ());
                assert_eq!(registry.workers().len(), 2);
            });
        });
        // The scope ends before the thread's locals do.
        while registry.workers().len() != 1 {
            thread::yield_now();
        }
        registry.leave();
        assert!(registry.workers().is_empty());
    }

    #[test]
    fn a_thread_stays_until_the_outer_of_two_guards_ends() {
        let registry = Arc::new(Registry::new(Duration::ZERO, false));
        registry.enter(worker);
        registry.enter(|_| unreachable!("it is listed"));
        registry.exit();
        assert_eq!(registry.workers().len(), 1);
        registry.exit();
        assert!(registry.workers().is_empty());
        // A thread that has left, and is a worker again by its pool, has no guards.
        registry.enter(worker);
        registry.leave();
        registry.with_mine(worker, |_| ());
        registry.exit();
        assert_eq!(registry.workers().len(), 1);
        registry.leave();
    }

    #[test]
    fn a_thread_may_be_a_worker_of_two_registries() {
        let [first, second] = [(); 2].map(|()| Arc::new(Registry::new(Duration::ZERO, false)));
        first.with_mine(worker, |_| ());
        second.with_mine(worker, |_| ());
        first.leave();
        assert_eq!((first.workers().len(), second.workers().len()), (0, 1));
        second.leave();
    }
}
