//! Whole pools, ours and those of others, and threads of the system, as further rows on this
//! computer.
//!
//! The strategies' null threads are tasks here. There are as many chains as processors. In a chain
//! each task creates the next, computes if it is to, and ends. A pool adds two things to a
//! strategy: a task is a closure that may panic, and the pool may sleep and be woken.
//!
//! | row | a thread of the figure is |
//! | --- | --- |
//! | `ThreadPool`, rayon, tokio | a task that another task spawned with the pool's function |
//! | the crate threadpool | the same, spawned through a handle that each task passes on |
//! | chili | one of the two parts of a fork, which it waits for: it has nothing else |
//! | `std::thread` | a thread of the system, detached |
//!
//! The crate threadpool needs the handle because its workers do not know their pool.
//!
//! Of figure 3.4's cost only pools have both halves. Chili waits for its forks, and threads of the
//! system are all started at once, however few processors there are. In that figure the creator is
//! not a worker of the pool, so the pool has one worker less than there are processors. If the
//! creator were a worker, tokio would not let other workers have the task that it created last.

use std::num::NonZero;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use stanchion_applications::null_threads::{Sweep, user_work};
use stanchion_machine::atomic::{AtomicBool, AtomicU64, Ordering};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::topology::{pin, processors};
use stanchion_machine::wait::{Patient, WaitPolicy, delay, retry_until, wait_until};
use stanchion_threadpool::{ThreadPool, spawn};

/// A row of the figures.
pub(in super::super) struct Peer {
    /// The label in tables.
    pub(super) name: &'static str,
    /// Set if its threads are the system's, so that there should be fewer.
    pub(super) is_system: bool,
    /// Returns the nanoseconds for a thread.
    pub(super) run: fn(&Chains) -> Result<f64, String>,
}

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Chains {
    /// The number of chains. Each keeps a processor busy.
    pub(super) chains: usize,
    /// The number of threads of all chains.
    pub(super) threads: u64,
    /// Mean computation of a thread, ns.
    pub(super) user: u64,
}

pub(super) const PEERS: &[Peer] = &[
    Peer { name: "ThreadPool", is_system: false, run: ours },
    Peer { name: "rayon", is_system: false, run: rayon },
    Peer { name: "tokio", is_system: false, run: tokio },
    Peer { name: "threadpool", is_system: false, run: threadpool },
    Peer { name: "chili (forks)", is_system: false, run: chili },
    Peer { name: "std::thread", is_system: true, run: system },
];

impl Chains {
    fn each(&self) -> u64 {
        (self.threads / self.chains as u64).max(1)
    }

    /// Returns the nanoseconds for a thread, from the start of all chains until all have computed.
    fn time(&self, mut begin: impl FnMut(Link)) -> f64 {
        let (done, ended) = mpsc::channel();
        let began = Instant::now();
        for chain in 0..self.chains as u64 {
            begin(Link { left: self.each() - 1, user: self.user, chain, done: done.clone() });
        }
        drop(done);
        // No thread sends. The loop ends when the last sender is dropped.
        while ended.recv().is_ok() {}
        began.elapsed().as_nanos() as f64 / (self.each() * self.chains as u64) as f64
    }
}

/// One thread of a chain.
struct Link {
    /// The number of threads after it.
    left: u64,
    /// Mean computation of a thread, in nanoseconds.
    user: u64,
    /// The number of its chain, for its random computation.
    chain: u64,
    /// The sender that is dropped when the thread has ended.
    done: Sender<()>,
}

impl Link {
    /// Runs the thread: spawns the next one, if this is not the last, and computes.
    fn live(mut self, spawn: impl FnOnce(Self)) {
        // A chain that does not compute ends with its last thread, so the others need not be
        // counted.
        let counted = (self.user > 0)
            .then(|| (self.done.clone(), user_work(self.user, self.chain << 48, self.left)));
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            spawn(self);
        }
        if let Some((_done, nanos)) = counted {
            stanchion_machine::burn(nanos);
        }
    }
}

fn ours(chains: &Chains) -> Result<f64, String> {
    fn task(link: Link) {
        link.live(|next| spawn(move || task(next)));
    }
    let pool = ThreadPool::new(chains.chains).map_err(|error| error.to_string())?;
    Ok(chains.time(|link| pool.spawn(move || task(link))))
}

fn rayon(chains: &Chains) -> Result<f64, String> {
    fn task(link: Link) {
        link.live(|next| rayon::spawn(move || task(next)));
    }
    let pool = rayon_pool(chains.chains)?;
    Ok(chains.time(|link| pool.spawn(move || task(link))))
}

fn rayon_pool(threads: usize) -> Result<rayon::ThreadPool, String> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder.build().map_err(|error| error.to_string())
}

fn tokio(chains: &Chains) -> Result<f64, String> {
    // A future that spawns one of its own type must be boxed.
    fn task(link: Link) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { link.live(|next| drop(tokio::spawn(task(next)))) })
    }
    let runtime = tokio_runtime(chains.chains)?;
    Ok(chains.time(|link| drop(runtime.spawn(task(link)))))
}

fn tokio_runtime(threads: usize) -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).build().map_err(|error| error.to_string())
}

fn threadpool(chains: &Chains) -> Result<f64, String> {
    fn task(pool: &Weak<peer_threadpool::ThreadPool>, link: Link) {
        // Its owner waits for the chains.
        let Some(handle) = pool.upgrade() else { return };
        let pool = pool.clone();
        link.live(|next| handle.execute(move || task(&pool, next)));
    }
    let pool = Arc::new(peer_threadpool::ThreadPool::new(chains.chains));
    let nanos = chains.time(|link| {
        let handle = Arc::downgrade(&pool);
        pool.execute(move || task(&handle, link));
    });
    // The last tasks may still be on their way out.
    pool.join();
    Ok(nanos)
}

/// Measures chili. The calling thread takes part, so chili has one thread less of its own, but at
/// least one. If it should have none, the caller is pinned, and that thread with it.
fn chili(chains: &Chains) -> Result<f64, String> {
    fn forks(scope: &mut chili::Scope<'_>, chains: &Chains, chain: u64) {
        for count in 0..chains.each() {
            let thread = || {
                if chains.user > 0 {
                    stanchion_machine::burn(user_work(chains.user, chain << 48, count));
                }
            };
            scope.join(|_| (), |_| thread());
        }
    }
    fn all(scope: &mut chili::Scope<'_>, chains: &Chains, numbers: std::ops::Range<u64>) {
        let middle = numbers.start.midpoint(numbers.end);
        if middle == numbers.start {
            return forks(scope, chains, numbers.start);
        }
        let (one, other) = (numbers.start..middle, middle..numbers.end);
        scope.join(|scope| all(scope, chains, one), |scope| all(scope, chains, other));
    }
    let pinned = match processors().first() {
        Some(&first) if chains.chains == 1 => Some(pin(first).map_err(|error| error.to_string())?),
        _ => None,
    };
    let more = NonZero::new(chains.chains - 1).unwrap_or(NonZero::<usize>::MIN);
    let config = chili::Config { thread_count: Some(more), ..chili::Config::default() };
    let pool = chili::ThreadPool::with_config(config);
    let mut scope = pool.scope();
    let began = Instant::now();
    all(&mut scope, chains, 0..chains.chains as u64);
    let elapsed = began.elapsed().as_nanos() as f64;
    drop(pinned);
    Ok(elapsed / (chains.each() * chains.chains as u64) as f64)
}

fn system(chains: &Chains) -> Result<f64, String> {
    fn thread(link: Link) {
        link.live(|next| drop(thread::spawn(move || thread(next))));
    }
    Ok(chains.time(thread))
}

/// A task of a pool in figure 3.4.
type Job = Box<dyn FnOnce() + Send>;

/// Costs in nanoseconds by runnable threads, the creator among them.
type Costs = Vec<(usize, f64)>;

/// Goes through the numbers of figure 3.4.
type Latencies = fn(&Sweep) -> Result<Costs, String>;

/// The costs of figure 3.4 on pools, by their names.
pub(super) const LATENCIES: [(&str, Latencies); 4] = [
    ("ThreadPool", |sweep| {
        let pool = ThreadPool::new(sweep.processors - 1).map_err(|error| error.to_string())?;
        Ok(latencies(sweep, |job| pool.spawn(job)))
    }),
    ("rayon", |sweep| {
        let pool = rayon_pool(sweep.processors - 1)?;
        Ok(latencies(sweep, |job| pool.spawn(job)))
    }),
    ("tokio", |sweep| {
        let runtime = tokio_runtime(sweep.processors - 1)?;
        Ok(latencies(sweep, |job| drop(runtime.spawn(async move { job() }))))
    }),
    ("threadpool", |sweep| {
        let pool = peer_threadpool::ThreadPool::new(sweep.processors - 1);
        Ok(latencies(sweep, |job| pool.execute(job)))
    }),
];

/// A task that runs until it is told to finish.
#[derive(Default)]
struct Seat {
    /// The time of its start; 0 before. The task writes it.
    started: AtomicU64,
    /// Set by the creator to make the task finish.
    told: AtomicBool,
    /// The time at which the task saw `told`; 0 before. The task writes it.
    finished: AtomicU64,
}

impl Seat {
    fn run(&self) {
        // Release, both: pair with the Acquire of `moment`.
        self.started.store(clock::now().to_bits().max(1), Ordering::Release);
        // Relaxed: an order carries nothing.
        wait_until(&self.told, Ordering::Relaxed, |told| told, &mut <Patient>::start());
        self.finished.store(clock::now().to_bits().max(1), Ordering::Release);
    }
}

/// Returns the moment in this word, once there is one.
fn moment(word: &AtomicU64) -> Option<Ticks> {
    // Acquire: pairs with the Release of `Seat::run`. The earlier actions of the task are over.
    let bits = word.load(Ordering::Acquire);
    (bits != 0).then(|| Ticks::from_bits(bits))
}

/// Measures the costs as `null_threads::latency` does, on the pool that `spawn` spawns on. The
/// calling thread is the creator.
fn latencies(sweep: &Sweep, spawn: impl Fn(Job)) -> Costs {
    let &Sweep { processors, most, rounds, settle_ns, seed, .. } = sweep;
    let mut sums = vec![0; most];
    // The tasks that have started, and those that have not.
    let (mut running, mut ready): (Vec<Arc<Seat>>, Vec<Arc<Seat>>) = (Vec::new(), Vec::new());
    let mut random = seed;
    let next_started = |ready: &mut Vec<Arc<Seat>>| {
        // The delay keeps this thread from disturbing the worker that looks for the task.
        delay(settle_ns);
        let started = || ready.iter().position(|seat| moment(&seat.started).is_some());
        let index = retry_until(started, &mut <Patient>::start());
        ready.swap_remove(index)
    };
    for _ in 0..rounds {
        for (runnable, sum) in sums.iter_mut().enumerate().skip(1) {
            delay(settle_ns);
            let seat = Arc::new(Seat::default());
            let task = seat.clone();
            let began = clock::now();
            spawn(Box::new(move || task.run()));
            let created = clock::now();
            ready.push(seat);
            if runnable >= processors {
                *sum += created.nanos_since(began);
                continue;
            }
            let seat = next_started(&mut ready);
            *sum += moment(&seat.started).map_or(0, |started| started.nanos_since(began));
            running.push(seat);
        }
        for (runnable, sum) in sums.iter_mut().enumerate().skip(1).rev() {
            delay(settle_ns);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let chosen = running.swap_remove((random >> 33) as usize % running.len());
            // Relaxed: an order carries nothing.
            chosen.told.store(true, Ordering::Relaxed);
            let finished = || moment(&chosen.finished);
            if runnable >= processors {
                let seat = next_started(&mut ready);
                let finished = retry_until(finished, &mut <Patient>::start());
                *sum += moment(&seat.started).map_or(0, |started| started.nanos_since(finished));
                running.push(seat);
            } else {
                retry_until(finished, &mut <Patient>::start());
            }
        }
    }
    let mean = |(runnable, sum): (usize, &u64)| (runnable, *sum as f64 / f64::from(rounds));
    sums.iter().enumerate().skip(1).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_applications::null_threads;

    #[test]
    fn chains_end() {
        for peer in PEERS {
            for (chains, threads, user) in [(2, 10, 0), (3, 1, 0), (1, 7, 0), (2, 10, 500)] {
                let chains = Chains { chains, threads, user };
                let nanos = (peer.run)(&chains).unwrap();
                let least = user as f64 / 2.0 / chains.chains as f64;
                assert!(nanos > least, "{} with {chains:?}: {nanos} ns", peer.name);
            }
        }
    }

    #[test]
    fn each_thread_of_a_chain_lives_once() {
        let lived = std::cell::Cell::new(0);
        fn live(lived: &std::cell::Cell<u64>, link: Link) {
            lived.set(lived.get() + 1);
            link.live(|next| live(lived, next));
        }
        let chains = Chains { chains: 3, threads: 32, user: 0 };
        chains.time(|link| live(&lived, link));
        assert_eq!(lived.get(), 30, "ten in each of three");
    }

    #[test]
    fn pools_have_a_cost_for_each_number() {
        let sweep = Sweep {
            processors: 3,
            most: 6,
            rounds: 3,
            threshold: None,
            settle_ns: 20_000,
            costs: null_threads::Costs::default(),
            seed: 1,
        };
        for (name, latencies) in LATENCIES {
            let found = latencies(&sweep).unwrap();
            let numbers: Vec<usize> = found.iter().map(|point| point.0).collect();
            assert_eq!(numbers, [1, 2, 3, 4, 5], "{name}");
            assert!(found.iter().all(|point| point.1 > 0.0), "{name}: {found:?}");
        }
    }
}
