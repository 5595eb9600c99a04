//! Costs that threads sleeping on locks cause: for threads that use other locks, and for the
//! threads that a release lets in.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, Criterion, SamplingMode, measurement::WallTime};
use stanchion_competitive::{RawPolicyMutex, policy};

use crate::contend::short;
use crate::lock::Lock;
use crate::suite::bench;

/// The stack size of threads that only sleep.
const STACK: usize = 64 << 10;
/// The stack size of a thread that holds thousands of locks, each in a section inside that of the
/// last one.
const DEEP_STACK: usize = 64 << 20;

/// A mutex on which threads sleep in `lock`.
trait Sleepable: Lock + 'static {
    /// Returns whether an unlock of `one` looks at sleepers of `other`, as far as this can be
    /// known.
    fn meet(_one: &Self, _other: &Self) -> bool {
        true
    }
}

impl Sleepable for RawPolicyMutex<policy::Adaptive> {
    fn meet(one: &Self, other: &Self) -> bool {
        one.shares_bucket(other)
    }
}
impl Sleepable for std::sync::Mutex<()> {}
impl Sleepable for parking_lot::Mutex<()> {}

/// Runs `then` while it holds all these locks.
fn hold<L: Lock>(locks: &[&'static L], then: &mut dyn FnMut()) {
    match locks.split_first() {
        Some((first, rest)) => first.with(|| hold(rest, then)),
        None => then(),
    }
}

/// A free mutex, and threads that sleep on others.
struct Sleepers<L: 'static> {
    /// The free mutex.
    mine: &'static L,
    /// The barrier that the thread with all other mutexes passes before it releases them.
    over: &'static Barrier,
    /// The thread with all other mutexes, and the sleepers.
    threads: Vec<JoinHandle<()>>,
}

impl<L: Sleepable> Sleepers<L> {
    /// Puts `sleepers` threads to sleep on each of `locks` mutexes. If there is one, an unlock of
    /// the free mutex looks at its sleepers.
    fn new(locks: usize, sleepers: usize) -> Self {
        let mine: &L = Box::leak(Box::new(L::make()));
        let others: Vec<&'static L> = (0..locks)
            .map(|_| {
                loop {
                    let other: &L = Box::leak(Box::new(L::make()));
                    if locks > 1 || L::meet(mine, other) {
                        break other;
                    }
                }
            })
            .collect();
        let coming: &AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let (held, over): (&Barrier, &Barrier) =
            (Box::leak(Box::new(Barrier::new(2))), Box::leak(Box::new(Barrier::new(2))));
        let spawn = |stack: usize, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().stack_size(stack).spawn(body).expect("a thread more")
        };
        let holds = others.clone();
        let hold_all = Box::new(move || {
            hold(&holds, &mut || {
                held.wait();
                over.wait();
            });
        });
        let mut threads = vec![spawn(DEEP_STACK, hold_all)];
        held.wait();
        for &other in &others {
            for _ in 0..sleepers {
                let sleep = Box::new(move || {
                    coming.fetch_add(1, SeqCst);
                    other.with(|| ());
                });
                threads.push(spawn(STACK, sleep));
            }
        }
        while coming.load(SeqCst) < locks * sleepers {
            thread::sleep(Duration::from_millis(1));
        }
        // The last threads have announced themselves and go to sleep now.
        thread::sleep(Duration::from_millis(500));
        Self { mine, over, threads }
    }

    /// Lets all threads end.
    fn end(self) {
        self.over.wait();
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

/// Measures lock and unlock of a free mutex beside sleepers.
fn beside<L: Sleepable>(group: &mut BenchmarkGroup<'_, WallTime>, locks: usize, sleepers: usize) {
    // Criterion calls the closure for each sample, and not at all if the filter does not match.
    let mut threads = None;
    bench(group, L::NAME, |bencher| {
        let mine = threads.get_or_insert_with(|| Sleepers::<L>::new(locks, sleepers)).mine;
        bencher.iter(|| black_box(mine).with(|| ()));
    });
    threads.into_iter().for_each(Sleepers::end);
}

pub(crate) fn unlock_beside_sleepers(criterion: &mut Criterion) {
    for (name, locks, sleepers) in [
        ("beside 10,000 sleepers on one other mutex of the bucket", 1, 10_000),
        ("beside one sleeper on each of 10,000 other mutexes", 10_000, 1),
    ] {
        let mut group = criterion.benchmark_group(name);
        short(&mut group);
        beside::<RawPolicyMutex<policy::Adaptive>>(&mut group, locks, sleepers);
        beside::<std::sync::Mutex<()>>(&mut group, locks, sleepers);
        beside::<parking_lot::Mutex<()>>(&mut group, locks, sleepers);
        group.finish();
    }
}

/// A reader-writer lock of this workspace or of a peer.
trait Shared: Send + Sync {
    const NAME: &'static str;
    fn make() -> Self;
    fn read(&self, section: impl FnOnce());
    fn write(&self, section: impl FnOnce());
}

macro_rules! shared {
    ($($name:literal: $lock:ty, $read:ident, $write:ident $(, $unwrap:ident)?;)+) => {$(
        impl Shared for $lock {
            const NAME: &'static str = $name;

            fn make() -> Self {
                Self::new(())
            }

            fn read(&self, section: impl FnOnce()) {
                let _guard = self.$read()$(.$unwrap())?;
                section();
            }

            fn write(&self, section: impl FnOnce()) {
                let _guard = self.$write()$(.$unwrap())?;
                section();
            }
        }
    )+};
}

shared! {
    "RwLock": stanchion_competitive::RwLock<()>, read, write;
    "std::sync::RwLock": std::sync::RwLock<()>, read, write, unwrap;
    "parking_lot::RwLock": parking_lot::RwLock<()>, read, write;
}

/// Returns the time from a writer's release until the last of `readers` sleeping readers is in.
fn crowd<L: Shared>(readers: usize) -> Duration {
    let lock = L::make();
    let (coming, inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut released = None;
    thread::scope(|scope| {
        lock.write(|| {
            for _ in 0..readers {
                thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, || {
                        coming.fetch_add(1, SeqCst);
                        lock.read(|| _ = inside.fetch_add(1, SeqCst));
                    })
                    .expect("a thread more");
            }
            while coming.load(SeqCst) < readers {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(10));
            released = Some(Instant::now());
        });
        while inside.load(SeqCst) < readers {
            thread::yield_now();
        }
        released.expect("set by the writer").elapsed()
    })
}

pub(crate) fn crowd_of_readers(criterion: &mut Criterion) {
    fn run<L: Shared>(group: &mut BenchmarkGroup<'_, WallTime>, readers: usize) {
        bench(group, L::NAME, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| crowd::<L>(readers)).sum());
        });
    }
    let mut group = criterion.benchmark_group("200 sleeping readers until the last is in");
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(2));
    run::<stanchion_competitive::RwLock<()>>(&mut group, 200);
    run::<std::sync::RwLock<()>>(&mut group, 200);
    run::<parking_lot::RwLock<()>>(&mut group, 200);
    group.finish();
}

/// Measures reading and writing of a lock that no other thread uses.
pub(crate) fn uncontended_reader_writer(criterion: &mut Criterion) {
    fn run<L: Shared>(group: &mut BenchmarkGroup<'_, WallTime>) {
        let lock = L::make();
        bench(group, &format!("{}, read", L::NAME), |bencher| {
            bencher.iter(|| black_box(&lock).read(|| ()));
        });
        bench(group, &format!("{}, write", L::NAME), |bencher| {
            bencher.iter(|| black_box(&lock).write(|| ()));
        });
    }
    let mut group = criterion.benchmark_group("uncontended reader-writer lock");
    short(&mut group);
    run::<stanchion_competitive::RwLock<()>>(&mut group);
    run::<std::sync::RwLock<()>>(&mut group);
    run::<parking_lot::RwLock<()>>(&mut group);
    group.finish();
}
