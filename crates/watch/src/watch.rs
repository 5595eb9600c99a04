//! The watch: the list of workers, and the thread that samples them if it is asked for.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::registry::Registry;
use crate::sample::Sample;
use crate::sampler::Sampler;
use crate::worker::{Pool, Worker};

/// The longest time between two looks of a watching thread.
const LOOK: Duration = Duration::from_millis(100);

/// Watches the workers of pools. Clones watch the same workers.
///
/// A watch starts no thread and takes no time but that of its hooks, until it is asked for a
/// [`sampler`](Self::sampler) or for a thread that samples ([`spawn`](Self::spawn)).
#[derive(Clone, Debug)]
pub struct Watch {
    /// The workers.
    pub(crate) registry: Arc<Registry>,
}

/// A builder of a [`Watch`].
///
/// ```
/// use std::time::Duration;
/// let watch = stanchion_watch::Watch::builder()
///     .threshold(Duration::from_millis(50))
///     .switch_records(true)
///     .build();
/// # drop(watch);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct WatchBuilder {
    /// The time awake from which a worker is reported.
    threshold: Duration,
    /// True if workers make switch records.
    with_records: bool,
}

impl WatchBuilder {
    /// Sets the time for which a worker may be awake without parking before that is a
    /// [`Stall`](crate::Stall). The default is 100 ms.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.threshold = threshold;
        self
    }

    /// Lets each worker record its switches. The default is not to.
    ///
    /// Then the parts of a worker's time are exact also where it parks between looks. A switch
    /// costs about a microsecond more, which a worker pays for each park. A worker takes 8 KiB of
    /// locked memory. Where the kernel refuses records, its counts are used as without this.
    /// Debian and Ubuntu refuse them as they come: `kernel.perf_event_paranoid` must be at most 2.
    pub fn switch_records(mut self, switch_records: bool) -> Self {
        self.with_records = switch_records;
        self
    }

    /// Creates the watch.
    #[must_use]
    pub fn build(self) -> Watch {
        Watch { registry: Arc::new(Registry::new(self.threshold, self.with_records)) }
    }
}

impl Watch {
    /// Creates a watch with the defaults of [`WatchBuilder`].
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins to describe a watch.
    pub fn builder() -> WatchBuilder {
        WatchBuilder { threshold: Duration::from_millis(100), with_records: false }
    }

    /// Makes the calling thread a worker of the pool with that name, until the returned guard is
    /// dropped. For pools that this crate has no hooks for. The pool tells by the guard when the
    /// worker parks.
    ///
    /// If the thread is a worker of this watch already, it stays what it is until then. Of two
    /// guards of a thread, the one that is dropped last ends it.
    ///
    /// ```
    /// let watch = stanchion_watch::Watch::new();
    /// let worker = watch.enter("mine");
    /// worker.park();
    /// assert_eq!(watch.sampler().sample().workers[0].state, stanchion_watch::State::Parked);
    /// worker.unpark();
    /// ```
    pub fn enter(&self, pool: &'static str) -> Entered {
        self.registry.enter(|with_records| {
            Worker::of_this_thread(Pool::Other(pool), None, true, with_records)
        });
        Entered { watch: self.clone(), not_send: PhantomData }
    }

    /// Takes the calling thread off the list of workers, until its pool next says that it parks.
    ///
    /// For threads that go on as something else: after `block_on` of a runtime of tokio with one
    /// thread, and at the beginning of the closure of `block_in_place`. Else they are told as awake
    /// for as long. Does nothing on other threads.
    pub fn leave(&self) {
        self.registry.leave();
    }

    /// Begins to look at the workers, from the calling thread.
    #[must_use]
    pub fn sampler(&self) -> Sampler {
        Sampler::new(Arc::clone(&self.registry))
    }

    /// Starts a thread that calls `callback` with a sample after each `interval`. It looks at the
    /// workers each 100 ms, or each `interval` if that is shorter.
    ///
    /// The thread ends when the returned value is dropped, and if `callback` panics.
    ///
    /// # Errors
    ///
    /// The system's, if it starts no thread.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let watch = stanchion_watch::Watch::new();
    /// let (send, samples) = mpsc::channel();
    /// let watching = watch.spawn(Duration::from_millis(10), move |sample| {
    ///     let _ = send.send(sample.to_string());
    /// })?;
    /// assert_eq!(samples.recv().unwrap(), "no workers");
    /// drop(watching);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn(
        &self,
        interval: Duration,
        callback: impl FnMut(&Sample) + Send + 'static,
    ) -> io::Result<Watching> {
        let (stop, stopped) = mpsc::channel();
        let watch = self.clone();
        let body = move || run(&watch, interval, &stopped, callback);
        let thread = thread::Builder::new().name("stanchion-watch".to_owned()).spawn(body)?;
        Ok(Watching { stop: Some(stop), thread: Some(thread) })
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

/// Samples until the other end of `stopped` is dropped.
fn run(
    watch: &Watch,
    interval: Duration,
    stopped: &mpsc::Receiver<()>,
    mut callback: impl FnMut(&Sample),
) {
    let mut sampler = watch.sampler();
    let mut sampled = Instant::now();
    loop {
        let left = interval.saturating_sub(sampled.elapsed());
        // At least a moment: an interval of 0 would never let other threads run.
        let pause = left.min(LOOK).max(Duration::from_micros(100));
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        if sampled.elapsed() >= interval {
            sampled = Instant::now();
            callback(&sampler.sample());
        } else {
            sampler.look();
        }
    }
}

/// A thread that samples. Dropping it ends the thread, and waits for the end of a callback that
/// runs. Dropping it in the callback does not wait.
#[must_use = "the thread ends when this is dropped"]
pub struct Watching {
    /// Dropped to stop the thread.
    stop: Option<mpsc::Sender<()>>,
    /// The thread. `None` once it was waited for.
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // An error: the callback has panicked, and the panic was told.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

/// A guard: the calling thread is a worker until it is dropped. Not `Send`.
#[derive(Debug)]
#[must_use = "the thread is a worker until this is dropped"]
pub struct Entered {
    /// The watch.
    watch: Watch,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

impl Entered {
    /// Notes that the worker is about to wait for work.
    pub fn park(&self) {
        self.watch.registry.with_known(Worker::park);
    }

    /// Notes that the worker has stopped waiting for work.
    pub fn unpark(&self) {
        self.watch.registry.with_known(Worker::unpark);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.watch.registry.exit();
    }
}
