//! Every lock on the simulated machines: there is one holder at a time, each thread gets the lock,
//! and a run with the same seed is the same run.
//!
//! | test | machines | processors | threads for each processor |
//! | --- | --- | --- | --- |
//! | `each_on_every_machine` | each kind of cache, and none | 1, 2, 8, 20 | 1 |
//! | `more_threads_than_processors` | of today, with short time slices | 1, 2, 3 | 3 |
//! | `deadlines::…` | of today | 2 | 1 |
//!
//! The study compares numbers with the papers. These tests check what must hold on any machine.

use std::cell::Cell;
use std::time::Duration;

use lock_api::{GuardSend, Mutex, RawMutex, RawMutexTimed};
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::Spin;
use stanchion_machine::{clock, thread, topology};
use stanchion_simulator::{Failure, Machine, Simulation, Statistics, Time, machines};
use stanchion_spin_simulated::contention::{Exchange, Read};
use stanchion_spin_simulated::{Anderson, Clh, TestAndSet};

/// The protected data. A holder works between its two writes to `held`, so that another thread can
/// run in between.
struct Payload {
    /// Set while a thread is in the critical section. The holder writes it.
    held: Cell<bool>,
    /// The number of critical sections so far. The holder adds one.
    count: Cell<u32>,
}

impl Payload {
    /// Runs a critical section of `nanos`.
    fn enter(&self, nanos: u64) {
        assert!(!self.held.replace(true), "two threads hold the lock");
        stanchion_machine::write(&self.count);
        stanchion_machine::work(nanos);
        self.count.set(self.count.get() + 1);
        stanchion_machine::write(&self.held);
        self.held.set(false);
    }
}

/// The work of a run's threads. No thread writes it during the run.
#[derive(Clone, Copy)]
struct Load {
    /// The number of threads.
    threads: usize,
    /// The number of times that each thread locks.
    times: u32,
    /// The length of a critical section, and of the pause after it.
    nanos: u64,
}

/// Runs `load` on `machine`. Spawning takes no time there, so that all threads start together.
fn contend<R>(machine: &Machine, seed: u64, load: Load) -> Result<Statistics, Failure>
where
    R: RawMutex + Send + Sync + 'static,
{
    let mut machine = machine.clone();
    machine.scheduling.spawn = Time::ZERO;
    let Load { threads, times, nanos } = load;
    let body = move || {
        let payload = Payload { held: Cell::new(false), count: Cell::new(0) };
        let mutex = Arc::new(Mutex::<R, _>::new(payload));
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    // There is a processor for each thread: pin it there.
                    let _pinned = (threads == topology::online()).then(|| topology::pin(number));
                    for _ in 0..times {
                        mutex.lock().enter(nanos);
                        stanchion_machine::work(nanos);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(mutex.lock().count.get(), threads as u32 * times);
    };
    Simulation::new(machine).seed(seed).run(body).map(|run| run.statistics)
}

/// Returns a machine of each kind, with `processors` processors.
fn all_machines(processors: usize) -> [Machine; 6] {
    let with = |mut machine: Machine| {
        machine.processors = processors;
        machine
    };
    [
        machines::symmetry_a(processors),
        machines::symmetry_b(processors),
        with(machines::challenge()),
        with(machines::firefly()),
        with(machines::makbilan()),
        machines::modern(processors),
    ]
}

fn each_on_every_machine<R: RawMutex + Send + Sync + 'static>() {
    const TIMES: u32 = 3;
    for processors in [1, 2, 8, 20] {
        for machine in all_machines(processors) {
            let nanos = (200.0 * machine.scale) as u64;
            let load = Load { threads: processors, times: TIMES, nanos };
            let name = &machine.name;
            let run = || {
                contend::<R>(&machine, 1, load)
                    .unwrap_or_else(|failure| panic!("{name}, {processors} processors: {failure}"))
            };
            let first = run();
            if processors == 8 {
                assert_eq!(first, run(), "{name}: the same run twice");
            }
            // Critical sections do not overlap.
            let sections = Time::nanos(nanos) * (processors as u64 * u64::from(TIMES));
            assert!(first.elapsed > sections, "{name}: {} for {sections}", first.elapsed);
        }
    }
}

/// Time slices end at any point of the locks' code.
fn more_threads_than_processors<R: RawMutex + Send + Sync + 'static>() {
    for processors in [1, 2, 3] {
        let mut machine = machines::modern(processors);
        machine.scheduling.quantum = Time::nanos(9_000);
        for seed in 0..3 {
            let load = Load { threads: 3 * processors, times: 20, nanos: 700 + 111 * seed };
            let statistics = contend::<R>(&machine, seed, load).unwrap();
            let preemptions: u64 = statistics.threads.iter().map(|thread| thread.preemptions).sum();
            assert!(preemptions > 0, "no time slice has ended");
        }
    }
}

macro_rules! locks {
    ($($name:ident: $lock:ty;)+) => {$(
        mod $name {
            #[test]
            fn each_on_every_machine() {
                super::each_on_every_machine::<$lock>();
            }

            #[test]
            fn more_threads_than_processors() {
                super::more_threads_than_processors::<$lock>();
            }
        }
    )+};
}

/// Defines the tests of each lock of the table.
macro_rules! of_the_table {
    ([] $({ $name:ident: $lock:ty, $($rest:tt)* })+) => {
        locks! { $($name: $lock;)+ }
    };
}

stanchion_spin_simulated::__locks!(of_the_table);

// Other parameters than the table's.
locks! {
    test_and_set: stanchion_spin_simulated::TestAndSet;
    anderson_2: stanchion_spin_simulated::Anderson<2>;
    never_yields: stanchion_spin_simulated::Mcs<stanchion_machine::wait::Spin>;
}

/// A lock that looks and then takes: two threads may look before either takes.
struct Racy(AtomicBool);

// SAFETY: none, on purpose. The payload survives a race, and reports it.
unsafe impl RawMutex for Racy {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            thread::yield_now();
        }
    }

    fn try_lock(&self) -> Option<GuardSend> {
        if self.0.load(Ordering::Acquire) {
            return None;
        }
        self.0.store(true, Ordering::Relaxed);
        Some(GuardSend::new())
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_found() {
    let load = Load { threads: 4, times: 20, nanos: 500 };
    let failure = (0..4).find_map(|seed| contend::<Racy>(&machines::modern(4), seed, load).err());
    assert!(matches!(failure, Some(Failure::Panicked { .. })), "{failure:?}");
}

mod deadlines {
    use super::*;

    fn a_waiter_gives_up_in_time<R>()
    where
        R: RawMutexTimed<Instant = clock::Instant, Duration = Duration> + Send + Sync + 'static,
    {
        let body = || {
            let mutex = Arc::new(Mutex::<R, _>::new(0));
            let holder = {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let mut count = mutex.lock();
                    stanchion_machine::work(10_000_000);
                    *count += 1;
                })
            };
            stanchion_machine::work(1_000_000);
            let start = clock::now();
            assert!(mutex.try_lock_for(Duration::from_millis(2)).is_none());
            let waited = clock::now().nanos_since(start);
            // A waiter that sleeps between its looks may be late by one sleep.
            assert!((2_000_000..3_200_000).contains(&waited), "{waited}");
            let moment = clock::moment_after(Duration::from_secs(1)).unwrap();
            *mutex.try_lock_until(moment).expect("the holder releases the lock long before") += 1;
            holder.join().unwrap();
            assert_eq!(*mutex.lock(), 2);
        };
        Simulation::new(machines::modern(2)).run(body).unwrap();
    }

    #[test]
    fn test_and_set() {
        a_waiter_gives_up_in_time::<TestAndSet>();
    }

    #[test]
    fn clh() {
        a_waiter_gives_up_in_time::<Clh>();
    }
}

/// Section 3 of Anderson, Lazowska and Levy 1989 says that waiters slow the holder if they
/// exchange, and do not if they queue.
#[test]
fn exchanging_waiters_slow_the_symmetry() {
    let machine = machines::symmetry_a(16);
    let elapsed = |statistics: Result<Statistics, Failure>| statistics.unwrap().elapsed.as_secs();
    let load = Load { threads: 16, times: 12, nanos: 20_000 };
    let exchanging = elapsed(contend::<TestAndSet<Exchange, Spin>>(&machine, 0, load));
    let queueing = elapsed(contend::<Anderson<64, Spin>>(&machine, 0, load));
    assert!(exchanging > 1.15 * queueing, "{exchanging} s against {queueing} s");
}

/// A waiter that reads its own copy makes no transactions while the lock is held.
#[test]
fn reading_waiters_leave_the_bus_alone() {
    let run = |nanos| {
        let load = Load { threads: 8, times: 1, nanos };
        contend::<TestAndSet<Read, Spin>>(&machines::symmetry_b(8), 0, load)
            .unwrap()
            .accesses
            .misses
    };
    assert_eq!(run(1_000_000), run(10_000_000));
}
