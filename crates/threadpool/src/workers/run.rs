//! The tasks of a worker: how it creates them, and how it runs ready work.

use crate::strategy::blocks::Task;
use crate::workers::{Fate, QueuePosition, Work, Worker, job};

impl Worker {
    /// Creates a task that runs `body`.
    ///
    /// # Safety
    ///
    /// As for [`job::fill`].
    #[inline]
    pub(crate) unsafe fn create<F: FnOnce(&Worker, Fate)>(&self, position: QueuePosition, body: F) {
        let mut body = Some(body);
        self.core().create(Some(&self.slot), position, &mut |task| {
            if let Some(body) = body.take() {
                // SAFETY: the caller's promise.
                unsafe { job::fill(task, body) };
            }
        });
    }

    /// Runs ready work, if there is any: for a task that waits for something that the pool does not
    /// know of. Returns whether there was any.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// assert!(!pool.install_with(|worker| worker.yield_now()), "nothing was ready");
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn yield_now(&self) -> bool {
        self.pool().run_calls(self);
        self.run_if_some(self.core().find_work(self))
    }

    /// Does what [`yield_now`](Self::yield_now) does, with work that the worker need not take from
    /// another worker: a task that it created, or that came from outside the pool. A strategy with
    /// central queues has no other tasks.
    ///
    /// ```
    /// use stanchion_threadpool::{ThreadPool, spawn};
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let ran = pool.install_with(|worker| {
    ///     spawn(|| ());
    ///     [worker.yield_local(), worker.yield_local()]
    /// });
    /// assert_eq!(ran, [true, false]);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn yield_local(&self) -> bool {
        self.pool().run_calls(self);
        self.run_if_some(self.core().find_local_work(self))
    }

    /// Runs `work`, if there is some. Returns whether there was.
    fn run_if_some(&self, work: Option<Work>) -> bool {
        let found = work.is_some();
        if let Some(work) = work {
            self.run_work(work);
        }
        found
    }

    /// Runs a task or a fork.
    pub(crate) fn run_work(&self, work: Work) {
        match work {
            Work::Task(task) => self.run(task),
            Work::Fork(stolen) => self.run_stolen(stolen),
        }
    }

    /// Runs a task and gives its block back.
    pub(crate) fn run(&self, task: Task) {
        self.counters().tasks.add(1);
        // SAFETY: it is out of the strategy, so it is filled and has not run.
        let block = unsafe { job::run(task, self, self.pool().fate()) };
        self.core().release_block(&self.slot, block);
    }
}
