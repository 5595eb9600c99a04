//! Threads that each block in the kernel for 1 ms, then compute for 1 ms, over and over: the share
//! of the processors' time that they use.
//!
//! Only the kernel knows that they block. Ideally every processor computes all the time. If a
//! thread keeps its processor while it blocks, half of that is reached, whatever the number of
//! threads. Tasks of the pools have no stacks of their own, so each task ends after a turn and
//! leaves another task.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations::{Runtime, blocking, spawn};
use stanchion_threadpool::{Scope, ThreadPoolBuilder};

use super::measure::by;
use super::{LASTING, ROUNDS};
use crate::cell::{Against, Cell, Column, Contestant, Figures};
use crate::race;
use crate::work::{Work, in_processors, process_time, processors};
use crate::{Effort, Options, Report};

/// The time that a thread blocks, and the time that it computes.
const EACH: Duration = Duration::from_millis(1);

/// The number of threads for each processor.
const CROWDS: [usize; 2] = [4, 16];

/// A way to block.
#[derive(Clone, Copy)]
enum Means {
    Sleep,
    Read,
}

/// A means by which a thread blocks.
enum Block {
    Sleep,
    /// A descriptor that can be read after a time. The read waits, as that of a pipe does.
    Read(File),
}

impl Block {
    fn new(means: Means) -> Self {
        match means {
            Means::Sleep => Self::Sleep,
            Means::Read => {
                // SAFETY: a call that takes numbers.
                let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) };
                assert!(timer >= 0, "the system has a descriptor left");
                // SAFETY: the descriptor is open, and no other code owns it.
                Self::Read(unsafe { File::from_raw_fd(timer) })
            }
        }
    }

    fn block(&mut self) {
        match self {
            Self::Sleep => thread::sleep(EACH),
            Self::Read(timer) => {
                let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                let once = libc::timespec { tv_sec: 0, tv_nsec: EACH.as_nanos() as _ };
                let when = libc::itimerspec { it_interval: zero, it_value: once };
                let before = std::ptr::null_mut();
                // SAFETY: an open timer and a time. Null: the former time is not stored.
                let set =
                    unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const when, before) };
                assert_eq!(set, 0, "a timer can be set");
                timer.read_exact(&mut [0; 8]).expect("a timer that is set goes off");
            }
        }
    }
}

/// The state that the threads of a run share.
struct Run {
    /// The time at which the threads stop.
    until: Instant,
    /// The computation of `EACH`.
    work: Work,
    /// The number of times that a thread has blocked and computed. The threads write it.
    done: AtomicU64,
    /// The time of the start.
    begun: Instant,
    /// The processor time of the process at the start, in nanoseconds.
    cpu: u64,
}

impl Run {
    fn begin(lasting: Duration) -> Arc<Self> {
        let work = Work::of(EACH.as_nanos() as u64);
        let (cpu, begun) = (process_time(), Instant::now());
        Arc::new(Self { until: begun + lasting, work, done: AtomicU64::new(0), begun, cpu })
    }

    /// Runs one thread. `wrapped` calls the function that blocks.
    fn take_part(&self, means: Means, wrapped: impl Fn(&mut dyn FnMut())) {
        let mut block = Block::new(means);
        loop {
            wrapped(&mut || block.block());
            self.compute();
            if Instant::now() >= self.until {
                return;
            }
        }
    }

    /// Takes one turn of a task, which blocks its worker. Returns whether another turn has to
    /// follow.
    fn turn(&self, block: &mut Block) -> bool {
        block.block();
        self.compute();
        Instant::now() < self.until
    }

    fn compute(&self) {
        self.work.compute();
        self.done.fetch_add(1, Relaxed);
    }

    fn end(&self) -> Figures {
        by(self.begun, self.cpu, self.done.load(Relaxed))
    }
}

/// The columns of a run's figures. The ideal is that all processors compute all the time.
const COLUMNS: &[Column] =
    &[Column::median("ns", 0), Column::median("of ideal, %", 1), Column::median("CPU, %", 1)];

pub(crate) fn cells() -> Vec<Cell> {
    let of = |(means, called): (Means, &str)| {
        CROWDS.map(|crowd| {
            let (count, size) = (crowd * processors(), in_processors(processors()));
            let title = format!("blocked, {count} threads, {called}, {size}");
            let contestants = contestants(count, means);
            Cell::new(title, COLUMNS, Against::First, contestants).sampled(0.5)
        })
    };
    [(Means::Sleep, "sleep"), (Means::Read, "read")].into_iter().flat_map(of).collect()
}

pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("blocked", cells(), ROUNDS, options, progress)
}

/// Returns the time of a turn, and what it and the processor time are of the ideal time, in per
/// cent.
fn shares(figures: &Figures) -> Figures {
    let each = EACH.as_nanos() as f64;
    let (ns, cpu) = (figures[0], figures[1]);
    vec![ns, 100.0 * each / processors() as f64 / ns, 100.0 * cpu / each]
}

fn contestants(count: usize, means: Means) -> Vec<Contestant> {
    /// Returns a run that lasts as long as the effort says.
    fn lasting(run: impl Fn(Duration) -> Figures) -> impl Fn(Effort) -> Figures {
        move |effort| shares(&run(effort.time(LASTING)))
    }
    let ours = |activations, tells| {
        lasting(move |lasting| ours(count, means, lasting, activations, tells))
    };
    let pool = |compensates| lasting(move |lasting| pool(count, means, lasting, compensates));
    vec![
        Contestant::new("activations", ours(true, false)),
        Contestant::new("activations, `blocking`", ours(true, true)),
        Contestant::new("activations off", ours(false, false)),
        Contestant::new("activations off, `blocking`", ours(false, true)),
        Contestant::new("a pool that compensates", pool(true)),
        Contestant::new("the same pool, does not", pool(false)),
        Contestant::peer("rayon", lasting(move |lasting| rayon(count, means, lasting))),
        Contestant::new("tokio tasks", lasting(move |lasting| tasks(count, means, lasting))),
        Contestant::peer(
            "tokio spawn_blocking",
            lasting(move |lasting| wrapped(count, means, lasting)),
        ),
        Contestant::peer(
            "a kernel thread each",
            lasting(move |lasting| threads(count, means, lasting)),
        ),
    ]
}

fn ours(count: usize, means: Means, lasting: Duration, activations: bool, tells: bool) -> Figures {
    let builder = Runtime::builder().spare_kernel_threads(count).activations(activations);
    builder.build().expect("few threads").run(move || {
        let run = Run::begin(lasting);
        let threads: Vec<_> = (0..count)
            .map(|_| {
                let run = run.clone();
                spawn(move || {
                    run.take_part(means, |block| match tells {
                        true => blocking(block),
                        false => block(),
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("it ends");
        }
        run.end()
    })
}

/// Runs tasks in a scope of that pool. After its turn each task creates the next. The pool of this
/// workspace and rayon have the same methods.
macro_rules! in_scope {
    ($pool:expr, $($scope:ident)::+, $count:expr, $means:expr, $lasting:expr) => {{
        fn task<'scope>(scope: &$($scope)::+<'scope>, run: &'scope Run, mut block: Block) {
            if run.turn(&mut block) {
                scope.spawn(move |scope| task(scope, run, block));
            }
        }
        let run = Run::begin($lasting);
        $pool.scope(|scope| {
            for _ in 0..$count {
                scope.spawn(|scope| task(scope, &run, Block::new($means)));
            }
        });
        run.end()
    }};
}

/// Tasks of `stanchion-threadpool`, which block their worker. With `compensate_blocking`, another
/// thread takes part meanwhile.
fn pool(count: usize, means: Means, lasting: Duration, compensates: bool) -> Figures {
    let builder = ThreadPoolBuilder::new().num_threads(processors()).spare_threads(count);
    let pool = builder.compensate_blocking(compensates).build();
    let pool = pool.expect("few threads");
    in_scope!(pool, Scope, count, means, lasting)
}

/// The same tasks in rayon.
fn rayon(count: usize, means: Means, lasting: Duration) -> Figures {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(processors()).build();
    let pool = pool.expect("few threads");
    in_scope!(pool, rayon::Scope, count, means, lasting)
}

/// Tasks of tokio, which block their worker.
fn tasks(count: usize, means: Means, lasting: Duration) -> Figures {
    let runtime = tokio();
    let run = Run::begin(lasting);
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let run = run.clone();
            runtime.spawn(async move {
                let mut block = Block::new(means);
                while run.turn(&mut block) {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("it ends");
    }
    run.end()
}

/// Tasks of tokio that block in `spawn_blocking`.
fn wrapped(count: usize, means: Means, lasting: Duration) -> Figures {
    let runtime = tokio();
    let run = Run::begin(lasting);
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let run = run.clone();
            runtime.spawn(async move {
                let mut block = Block::new(means);
                loop {
                    let blocks = move || {
                        block.block();
                        block
                    };
                    block = tokio::task::spawn_blocking(blocks).await.expect("it ends");
                    run.compute();
                    if Instant::now() >= run.until {
                        return;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("it ends");
    }
    run.end()
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(processors())
        .build()
        .expect("few threads")
}

fn threads(count: usize, means: Means, lasting: Duration) -> Figures {
    let ready = Barrier::new(count + 1);
    let run = std::sync::OnceLock::<Arc<Run>>::new();
    let (ready, run) = (&ready, &run);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(move || {
                ready.wait();
                ready.wait();
                run.get().expect("it has begun").take_part(means, |block| block());
            });
        }
        ready.wait();
        let _ = run.set(Run::begin(lasting));
        ready.wait();
    });
    run.get().expect("it has begun").end()
}
