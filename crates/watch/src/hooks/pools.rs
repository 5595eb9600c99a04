//! Pools that tell when their threads start and end: rayon's and `stanchion-threadpool`'s.

use std::fmt;
use std::sync::Arc;

use crate::registry::Registry;
use crate::watch::Watch;
use crate::worker::{Pool, Worker};

/// A handler of the program, with the index of the thread.
type Handler = Box<dyn Fn(usize) + Send + Sync>;

/// The program's own handlers for the threads of a pool. A builder keeps one handler of each kind,
/// which is the watch's. It calls these.
#[derive(Default)]
#[must_use]
pub struct PoolHooks {
    /// Called at the start of a thread.
    start: Option<Handler>,
    /// Called before a thread ends.
    exit: Option<Handler>,
}

impl PoolHooks {
    /// Creates no handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the handler that a thread calls when it starts, after it was added to the watch.
    pub fn start_handler(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.start = Some(Box::new(handler));
        self
    }

    /// Sets the handler that a thread calls before it ends, while the watch still sees it.
    pub fn exit_handler(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.exit = Some(Box::new(handler));
        self
    }

    /// Returns the two handlers for the builder of a pool.
    fn install(
        self,
        registry: &Arc<Registry>,
        pool: Pool,
    ) -> (impl Fn(usize) + Send + Sync + 'static, impl Fn(usize) + Send + Sync + 'static) {
        let (at_start, at_exit) = (Arc::clone(registry), Arc::clone(registry));
        let Self { start, exit } = self;
        let start = move |index| {
            at_start.with_mine(
                |with_records| Worker::of_this_thread(pool, Some(index), false, with_records),
                |_| (),
            );
            start.iter().for_each(|handler| handler(index));
        };
        let exit = move |index| {
            exit.iter().for_each(|handler| handler(index));
            at_exit.leave();
        };
        (start, exit)
    }
}

impl fmt::Debug for PoolHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolHooks")
            .field("start", &self.start.is_some())
            .field("exit", &self.exit.is_some())
            .finish()
    }
}

/// Pools without park hooks.
impl Watch {
    /// Adds the threads of a pool of rayon. Their states are running, ready and blocked. A thread
    /// without work reads as blocked in `futex`: rayon does not tell when it parks. So there are no
    /// stalls of such a worker.
    ///
    /// The start and exit handlers that `builder` has are replaced. Give the program's own as
    /// `hooks`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use stanchion_watch::{Pool, PoolHooks, Watch};
    ///
    /// let watch = Watch::new();
    /// let builder = rayon::ThreadPoolBuilder::new().num_threads(2);
    /// let pool = watch.rayon(builder, PoolHooks::new()).build()?;
    /// // Each thread has called its handler.
    /// pool.broadcast(|_| ());
    /// let sample = watch.sampler().sample();
    /// assert_eq!(sample.workers.len(), 2);
    /// assert_eq!(sample.workers[0].pool, Pool::Rayon);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "rayon")]
    #[must_use]
    pub fn rayon<S>(
        &self,
        builder: rayon::ThreadPoolBuilder<S>,
        hooks: PoolHooks,
    ) -> rayon::ThreadPoolBuilder<S> {
        let (start, exit) = hooks.install(&self.registry, Pool::Rayon);
        builder.start_handler(start).exit_handler(exit)
    }

    /// Adds the threads of a pool of `stanchion-threadpool`, as [`rayon`](Self::rayon) does.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use stanchion_threadpool::ThreadPoolBuilder;
    /// use stanchion_watch::{Pool, PoolHooks, Watch};
    ///
    /// let watch = Watch::new();
    /// let builder = ThreadPoolBuilder::new().num_threads(2);
    /// let pool = watch.threadpool(builder, PoolHooks::new()).build()?;
    /// pool.broadcast(|_| ());
    /// assert_eq!(watch.sampler().sample().workers[0].pool, Pool::Threadpool);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "threadpool")]
    pub fn threadpool<S>(
        &self,
        builder: stanchion_threadpool::ThreadPoolBuilder<S>,
        hooks: PoolHooks,
    ) -> stanchion_threadpool::ThreadPoolBuilder<S>
    where
        S: stanchion_threadpool::ThreadSpawn,
    {
        let (start, exit) = hooks.install(&self.registry, Pool::Threadpool);
        builder.start_handler(start).exit_handler(exit)
    }
}
