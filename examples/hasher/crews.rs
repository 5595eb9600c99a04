//! The crews: what runs a job for each file, one after the other in [`CREWS`].
//!
//! All run the same jobs, [`super::walk`]'s, which read with plain `std::fs`.

use super::walk::{Crew, Found, Walk};
use stanchion_activations::Runtime;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

/// The size of a crew.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of processors.
    pub processors: usize,
    /// Kernel threads in all, for those that start more than one a processor.
    pub threads: usize,
}

/// An error before anything was read.
pub type Refused = Box<dyn Error + Send + Sync>;

/// The result of a run, and a text about it.
pub type Outcome = Result<(Found, String), Refused>;

/// A crew by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in `--runtime`.
    pub name: &'static str,
    /// The line in `--help`.
    pub about: &'static str,
    /// Hashes the files at the path, or below it.
    pub run: fn(Size, &Path) -> Outcome,
}

/// All of them.
pub const CREWS: [Entry; 6] = [
    Entry {
        name: "activations",
        about: "A user-level thread for each file; others go on when one blocks",
        run: |size, root| user(size, root, true),
    },
    Entry {
        name: "user",
        about: "The same, but a thread that blocks takes its processor along",
        run: |size, root| user(size, root, false),
    },
    Entry { name: "tokio", about: "tokio's `spawn_blocking` for each file", run: tokio },
    Entry { name: "rayon", about: "rayon's `spawn` for each file", run: rayon },
    Entry { name: "kernel", about: "A kernel thread for each file", run: kernel },
    Entry { name: "sequential", about: "One after the other", run: sequential },
];

/// Threads of the runtime that calls.
struct User;

impl Crew for User {
    fn start(&self, job: impl FnOnce() + Send + 'static) {
        drop(stanchion_activations::spawn(job));
    }
}

fn user(size: Size, root: &Path, activations: bool) -> Outcome {
    let runtime = Runtime::builder()
        .processors(size.processors)
        .spare_kernel_threads(size.threads.saturating_sub(size.processors))
        .activations(activations)
        .build()?;
    let walk = Walk::new(User, root);
    let first = walk.clone();
    drop(runtime.spawn(move || first.begin()));
    let found = walk.end();
    let metrics = runtime.metrics();
    let said = format!(
        "{}; {} threads on {} kernel threads, {} hand-offs, {} of them false",
        runtime.capabilities(),
        metrics.spawned,
        metrics.kernel_threads,
        metrics.handoffs,
        metrics.false_handoffs,
    );
    Ok((found, said))
}

/// Tasks of tokio's pool for what blocks.
struct Tokio(tokio::runtime::Handle);

impl Crew for Tokio {
    fn start(&self, job: impl FnOnce() + Send + 'static) {
        drop(self.0.spawn_blocking(job));
    }
}

fn tokio(size: Size, root: &Path) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(size.processors)
        .max_blocking_threads(size.threads)
        .build()?;
    let walk = Walk::new(Tokio(runtime.handle().clone()), root);
    let first = walk.clone();
    drop(runtime.spawn_blocking(move || first.begin()));
    let found = walk.end();
    Ok((found, format!("{} threads for what blocks, at most", size.threads)))
}

/// Tasks of the pool that calls.
struct Rayon;

impl Crew for Rayon {
    fn start(&self, job: impl FnOnce() + Send + 'static) {
        rayon::spawn(job);
    }
}

fn rayon(size: Size, root: &Path) -> Outcome {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(size.processors).build()?;
    let walk = Walk::new(Rayon, root);
    let first = walk.clone();
    pool.spawn(move || first.begin());
    let found = walk.end();
    Ok((found, "a thread a processor".to_owned()))
}

/// A job that waits for its thread.
type Job = Box<dyn FnOnce() + Send>;

/// Sends jobs to the thread that starts the threads.
struct Kernel(mpsc::Sender<Option<Job>>);

impl Crew for Kernel {
    fn start(&self, job: impl FnOnce() + Send + 'static) {
        // The thread that starts threads goes on until the last job has ended.
        let _ = self.0.send(Some(Box::new(job)));
    }
}

/// Says that a job has ended, also if it panics.
struct Ended(mpsc::Sender<Option<Job>>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send(None);
    }
}

/// Runs a thread for each job, so many at a time. The caller starts them, so that no job waits for
/// a thread while it has one.
fn kernel(size: Size, root: &Path) -> Outcome {
    let (jobs, waiting) = mpsc::channel::<Option<Job>>();
    let walk = Walk::new(Kernel(jobs.clone()), root);
    let first = walk.clone();
    let _ = jobs.send(Some(Box::new(move || first.begin())));
    let (mut running, mut unfinished, mut started) = (0, 0_usize, 0_u64);
    let mut later = VecDeque::new();
    // What a job has started comes before its end, so when none is unfinished there will be none.
    loop {
        match waiting.recv()? {
            Some(job) => {
                later.push_back(job);
                unfinished += 1;
            }
            None => (running, unfinished) = (running - 1, unfinished - 1),
        }
        if unfinished == 0 {
            break;
        }
        while running < size.threads {
            let Some(job) = later.pop_front() else { break };
            let ended = Ended(jobs.clone());
            let body = move || {
                let _ended = ended;
                job();
            };
            drop(thread::Builder::new().stack_size(128 << 10).spawn(body)?);
            (running, started) = (running + 1, started + 1);
        }
    }
    Ok((walk.end(), format!("{started} kernel threads, {} at a time", size.threads)))
}

/// Jobs that come after the present one.
struct Sequential;

thread_local! {
    static LATER: RefCell<VecDeque<Job>> = RefCell::default();
}

impl Crew for Sequential {
    fn start(&self, job: impl FnOnce() + Send + 'static) {
        LATER.with_borrow_mut(|later| later.push_back(Box::new(job)));
    }
}

fn sequential(_size: Size, root: &Path) -> Outcome {
    let walk = Walk::new(Sequential, root);
    walk.begin();
    while let Some(job) = LATER.with_borrow_mut(VecDeque::pop_front) {
        job();
    }
    Ok((walk.end(), "no threads".to_owned()))
}
