//! Mutexes that spin, then sleep, and their peers: `cargo bench -p benches --bench competitive`.
//!
//! The groups are:
//!
//! - `uncontended mutex`: one acquisition and release by one thread.
//! - `mutex, 2 threads` and so on: the same by as many threads, on all processors of this process.
//!   The figure is for one acquisition, with an empty section.
//! - `uncontended reader-writer lock`: one read or write by one thread.
//! - `beside 10,000 sleepers on one other mutex of the bucket` and
//!   `beside one sleeper on each of 10,000 other mutexes`: one acquisition and release by one
//!   thread, of a mutex that no other thread uses.
//! - `200 sleeping readers until the last is in`: the time from a writer's release.
//!
//! An elapsed time says nothing of fairness, tails or burnt processor time. `cargo study regret`
//! measures those together.

mod contend;
mod lock;
mod sleepers;
mod suite;

use std::hint::black_box;

use contend::{contend, short};
use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use lock::Lock;
use stanchion_competitive::waits::Recorder;
use stanchion_competitive::{RawPolicyMutex, policy};

/// Calls `run::<L>(arguments)` for every mutex: the default, those of the other policies of the
/// table, then the peers.
macro_rules! for_every_mutex {
    ([$run:ident $arguments:tt] $({ $test:ident: $policy:ty, $($rest:tt)* })+) => {
        $(for_other_policies!($test: $run::<RawPolicyMutex<$policy>> $arguments);)+
    };
    ($run:ident $arguments:tt) => {
        $run::<RawPolicyMutex<policy::Adaptive>> $arguments;
        $run::<RawPolicyMutex<Recorder<policy::Adaptive>>> $arguments;
        stanchion_competitive::__policies!(for_every_mutex [$run $arguments]);
        $run::<std::sync::Mutex<()>> $arguments;
        $run::<parking_lot::Mutex<()>> $arguments;
        $run::<peer_spin::mutex::SpinMutex<()>> $arguments;
    };
}

/// Makes the call for a policy, with three exceptions.
macro_rules! for_other_policies {
    // The default, which comes first.
    (adaptive: $($call:tt)+) => {};
    // With more threads than processors, a waiter spins for as long as its time slice lasts.
    (always_spin: $($call:tt)+) => {};
    // Without a threshold it is `FixedSpin`.
    (optimal_online: $($call:tt)+) => {};
    ($test:ident: $($call:tt)+) => {
        $($call)+;
    };
}

fn uncontended(criterion: &mut Criterion) {
    fn run<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>) {
        suite::bench(group, L::NAME, |bencher| {
            let lock = L::make();
            bencher.iter(|| black_box(&lock).with(|| ()));
        });
    }
    let mut group = criterion.benchmark_group("uncontended mutex");
    short(&mut group);
    for_every_mutex!(run(&mut group));
    group.finish();
}

fn contended(criterion: &mut Criterion) {
    fn run<L: Lock>(group: &mut BenchmarkGroup<'_, WallTime>, threads: usize) {
        suite::bench(group, L::NAME, |bencher| {
            bencher.iter_custom(|acquisitions| contend::<L>(threads, false, acquisitions));
        });
    }
    for threads in [2, 8, 32] {
        let mut group = criterion.benchmark_group(format!("mutex, {threads} threads"));
        suite::windows(&mut group);
        for_every_mutex!(run(&mut group, threads));
        group.finish();
    }
}

fn main() {
    suite::main(
        "competitive",
        "about 2 minutes, with --quick 1",
        &[
            uncontended,
            sleepers::uncontended_reader_writer,
            contended,
            sleepers::unlock_beside_sleepers,
            sleepers::crowd_of_readers,
        ],
    );
}
