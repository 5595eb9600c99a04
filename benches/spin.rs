//! Spin locks of this workspace and their peers: `cargo bench -p benches --bench spin`.
//!
//! The groups are:
//!
//! - `uncontended`: one acquisition and release by one thread.
//! - `two threads`: the same by two threads, each on a processor of its own. The figure is for one
//!   acquisition, with an empty section.
//! - `8 threads` and `32 threads`: the same by as many threads, on all processors of this process.
//!
//! An elapsed time says nothing of fairness, tails or burnt processor time. `cargo study all89`
//! measures those together.

mod contend;
mod lock;
mod suite;

use std::hint::black_box;

use contend::{contend, short};
use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use lock::Lock;

mcslock::thread_local_node!(static NODE);

/// `mcslock` with its node in a thread-local, as code would use it that wants a plain `lock`.
struct McslockThreadLocal(mcslock::raw::spins::Mutex<()>);

impl Lock for McslockThreadLocal {
    const NAME: &'static str = "mcslock, thread-local";

    fn make() -> Self {
        Self(mcslock::raw::spins::Mutex::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        self.0.lock_with_local_then(&NODE, |()| section());
    }
}

/// Calls `run::<L>(arguments)` for every lock: each lock of the table, and behind it its peer.
macro_rules! for_every_lock {
    ([$run:ident $arguments:tt] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: [$($test:ident, $raw:ident, $mutex:ident, $guard:ident, $about:literal)?],
        $($rest:tt)*
    })+) => {
        $($(
            $run::<$lock> $arguments;
            behind!($raw: $run $arguments);
        )?)+
    };
    ($run:ident $arguments:tt) => {
        stanchion_spin::__locks!(for_every_lock [$run $arguments]);
        $run::<std::sync::Mutex<()>> $arguments;
        $run::<parking_lot::Mutex<()>> $arguments;
        $run::<parking_lot::FairMutex<()>> $arguments;
    };
}

/// Calls `run::<L>(arguments)` for the peer of a lock, if it has one.
macro_rules! behind {
    (TestAndSet: $run:ident $arguments:tt) => {
        $run::<peer_spin::mutex::SpinMutex<()>> $arguments;
    };
    (Ticket: $run:ident $arguments:tt) => {
        $run::<peer_spin::mutex::TicketMutex<()>> $arguments;
    };
    (Clh: $run:ident $arguments:tt) => {
        $run::<clhlock::raw::spins::Mutex<()>> $arguments;
    };
    (Mcs: $run:ident $arguments:tt) => {
        $run::<McslockThreadLocal> $arguments;
    };
    ($none:ident: $run:ident $arguments:tt) => {};
}

fn uncontended(criterion: &mut Criterion) {
    fn run<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>) {
        suite::bench(group, L::NAME, |bencher| {
            let lock = L::make();
            bencher.iter(|| black_box(&lock).with(|| ()));
        });
    }
    let mut group = criterion.benchmark_group("uncontended");
    short(&mut group);
    for_every_lock!(run(&mut group));
    group.finish();
}

fn contended(criterion: &mut Criterion) {
    fn run<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>, threads: usize, pinned: bool) {
        suite::bench(group, L::NAME, |bencher| {
            bencher.iter_custom(|acquisitions| contend::<L>(threads, pinned, acquisitions));
        });
    }
    for (name, threads, pinned) in
        [("two threads", 2, true), ("8 threads", 8, false), ("32 threads", 32, false)]
    {
        let mut group = criterion.benchmark_group(name);
        suite::windows(&mut group);
        for_every_lock!(run(&mut group, threads, pinned));
        group.finish();
    }
}

fn main() {
    suite::main("spin", "about 2 minutes, with --quick half a minute", &[uncontended, contended]);
}
