//! Runtimes of tokio: hooks for their builders.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Builder;

use crate::watch::Watch;
use crate::worker::{Pool, Worker};

/// A hook of the program.
type Hook = Box<dyn Fn() + Send + Sync>;

/// A hook of the program for a task.
#[cfg(tokio_unstable)]
type TaskHook = Box<dyn Fn(&tokio::runtime::TaskMeta<'_>) + Send + Sync>;

/// The program's own hooks for a runtime of tokio. A builder keeps one hook of each kind. The watch
/// takes those that are listed here, and calls these.
#[derive(Default)]
#[must_use]
pub struct TokioHooks {
    /// Called before a thread parks.
    park: Option<Hook>,
    /// Called after a thread was unparked.
    unpark: Option<Hook>,
    /// Called before a thread ends.
    stop: Option<Hook>,
    #[cfg(tokio_unstable)]
    /// Called before a poll.
    before_poll: Option<TaskHook>,
    #[cfg(tokio_unstable)]
    /// Called after a poll.
    after_poll: Option<TaskHook>,
}

impl TokioHooks {
    /// Creates no hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the hook that a worker calls before it parks.
    pub fn on_thread_park(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.park = Some(Box::new(hook));
        self
    }

    /// Sets the hook that a worker calls after it was unparked.
    pub fn on_thread_unpark(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.unpark = Some(Box::new(hook));
        self
    }

    /// Sets the hook that a thread calls before it ends.
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.stop = Some(Box::new(hook));
        self
    }

    /// Sets the hook that a worker calls before it polls a task.
    #[cfg(tokio_unstable)]
    pub fn on_before_task_poll(
        mut self,
        hook: impl Fn(&tokio::runtime::TaskMeta<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.before_poll = Some(Box::new(hook));
        self
    }

    /// Sets the hook that a worker calls after it polled a task.
    #[cfg(tokio_unstable)]
    pub fn on_after_task_poll(
        mut self,
        hook: impl Fn(&tokio::runtime::TaskMeta<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.after_poll = Some(Box::new(hook));
        self
    }
}

impl fmt::Debug for TokioHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioHooks")
            .field("park", &self.park.is_some())
            .field("unpark", &self.unpark.is_some())
            .field("stop", &self.stop.is_some())
            .finish_non_exhaustive()
    }
}

/// Runtimes of tokio.
impl Watch {
    /// Adds the workers of a runtime of tokio: the threads that park. Threads for blocking calls do
    /// not.
    ///
    /// Sets the hooks `on_thread_park`, `on_thread_unpark` and `on_thread_stop` of `builder`, and
    /// replaces those that it has. Give the program's own as `hooks`. `on_thread_start` stays the
    /// program's. A park costs two readings of the clock.
    ///
    /// With `--cfg tokio_unstable` it sets `on_before_task_poll` and `on_after_task_poll` too. Then
    /// samples tell the number of polls, and the task that is polled, by its number and the place
    /// at which it was spawned. Tokio does not tell its name.
    ///
    /// ```
    /// use stanchion_watch::{TokioHooks, Watch};
    ///
    /// let watch = Watch::new();
    /// let mut builder = tokio::runtime::Builder::new_multi_thread();
    /// let runtime = watch.tokio(&mut builder, TokioHooks::new()).worker_threads(2).build()?;
    /// let mut sampler = watch.sampler();
    /// // A worker is added when it first parks.
    /// while sampler.sample().workers.len() < 2 {
    ///     std::thread::yield_now();
    /// }
    /// # drop(runtime);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn tokio<'a>(&self, builder: &'a mut Builder, hooks: TokioHooks) -> &'a mut Builder {
        let describe = |with_records| Worker::of_this_thread(Pool::Tokio, None, true, with_records);
        let registry = Arc::clone(&self.registry);
        let call = hooks.park;
        builder.on_thread_park(move || {
            // The program's hook is work of the worker.
            call.iter().for_each(|hook| hook());
            registry.with_mine(describe, Worker::park);
        });
        let registry = Arc::clone(&self.registry);
        let call = hooks.unpark;
        builder.on_thread_unpark(move || {
            registry.with_known(Worker::unpark);
            call.iter().for_each(|hook| hook());
        });
        let registry = Arc::clone(&self.registry);
        let call = hooks.stop;
        builder.on_thread_stop(move || {
            call.iter().for_each(|hook| hook());
            registry.leave();
        });
        #[cfg(tokio_unstable)]
        self.polls(builder, hooks.before_poll, hooks.after_poll);
        builder
    }

    /// Sets the hooks around polls.
    #[cfg(tokio_unstable)]
    fn polls(&self, builder: &mut Builder, before: Option<TaskHook>, after: Option<TaskHook>) {
        let registry = Arc::clone(&self.registry);
        builder.on_before_task_poll(move |task| {
            let (id, place) = (number(task.id()), task.spawned_at());
            registry.with_known(|worker| worker.polls.begin(id, place));
            before.iter().for_each(|hook| hook(task));
        });
        let registry = Arc::clone(&self.registry);
        builder.on_after_task_poll(move |task| {
            after.iter().for_each(|hook| hook(task));
            registry.with_known(|worker| worker.polls.end());
        });
    }
}

/// Returns the number of a task. Tokio shows it as text, which takes an allocation, and hashes it.
#[cfg(tokio_unstable)]
fn number(id: tokio::task::Id) -> u64 {
    use std::hash::{Hash, Hasher};

    /// Keeps the number that is hashed.
    struct Number(u64);

    impl Hasher for Number {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
        }

        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }
    }

    let mut number = Number(0);
    id.hash(&mut number);
    number.finish()
}
