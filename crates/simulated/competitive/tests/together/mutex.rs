//! The mutex on the simulated machines, with every policy: there is one holder at a time, no
//! sleeper is forgotten, and the run is the same every time.
//!
//! A thread that is never woken is a deadlock, which the simulator reports with the thread's name.

use std::cell::Cell;
use std::time::Duration;

use stanchion_competitive_simulated::policy::{AlwaysBlock, AlwaysSpin, Policy};
use stanchion_competitive_simulated::{Mutex, PolicyMutex, cost, waits};
use stanchion_machine::sync::Arc;
use stanchion_machine::{clock, thread};
use stanchion_simulator::{Activity, Machine, Run, Simulation, Statistics, Time, machines};

/// The data under the lock. Its work gives the other threads time to break in.
struct Payload {
    /// Set while a thread is inside. Written by the holder.
    held: Cell<bool>,
    /// The number of acquisitions. Written by the holder.
    count: Cell<u32>,
}

impl Payload {
    const fn new() -> Self {
        Self { held: Cell::new(false), count: Cell::new(0) }
    }

    fn enter(&self, nanos: u64) {
        assert!(!self.held.replace(true), "two threads hold the lock");
        stanchion_machine::work(nanos);
        stanchion_machine::write(&self.count);
        self.count.set(self.count.get() + 1);
        self.held.set(false);
    }
}

fn contend<P>(machine: Machine, seed: u64, threads: usize, nanos: u64) -> Statistics
where
    P: Policy + Send + Sync + 'static,
{
    const TIMES: u32 = 12;
    let name = format!("{} with {threads} threads on {}", std::any::type_name::<P>(), machine.name);
    let run = Simulation::new(machine).seed(seed).run(move || {
        let mutex = Arc::new(PolicyMutex::<_, P>::new(Payload::new()));
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    for _ in 0..TIMES {
                        mutex.lock().enter(nanos);
                        stanchion_machine::work(nanos / 2);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(mutex.lock().count.get(), threads as u32 * TIMES);
    });
    run.unwrap_or_else(|failure| panic!("{name}: {failure}")).statistics
}

/// Short sections, and sections that are longer than it takes to sleep.
fn with_every_load<P: Policy + Send + Sync + 'static>() {
    for processors in [1, 2, 8] {
        for mut machine in [machines::modern(processors), machines::firefly()] {
            machine.processors = processors;
            for nanos in [300.0 * machine.scale, 60_000.0 * machine.scale] {
                let run = || contend::<P>(machine.clone(), 1, processors + 1, nanos as u64);
                assert_eq!(run(), run(), "{}: the same run twice", machine.name);
            }
        }
    }
}

/// Slices end while the lock is held, and while others are on their way to sleep.
fn with_short_slices<P: Policy + Send + Sync + 'static>() {
    for seed in 0..4 {
        let mut machine = machines::modern(2);
        machine.scheduling.quantum = Time::nanos(20_000 + 777 * seed);
        let statistics = contend::<P>(machine, seed, 7, 4_000);
        assert!(statistics.threads.iter().any(|thread| thread.preemptions > 0));
    }
}

macro_rules! policies {
    ([] $({ $name:ident: $policy:ty, $($rest:tt)* })+) => {$(
        mod $name {
            #[test]
            fn with_every_load() {
                super::with_every_load::<$policy>();
            }

            #[test]
            fn with_short_slices() {
                super::with_short_slices::<$policy>();
            }
        }
    )+};
}

stanchion_competitive_simulated::__policies!(policies);

/// The time that the threads of a run, without the one that joins them, spent on that.
fn spent(statistics: &Statistics, activity: Activity) -> Time {
    statistics.threads[1..].iter().map(|thread| thread.times.of(activity)).sum()
}

#[test]
fn policies_do_what_their_names_say() {
    const SECTION_NS: u64 = 100_000;
    let spins = contend::<AlwaysSpin>(machines::modern(4), 0, 3, SECTION_NS);
    assert_eq!(spent(&spins, Activity::Blocked), Time::ZERO);
    assert!(spent(&spins, Activity::Spinning) > Time::nanos(SECTION_NS));
    let sleeps = contend::<AlwaysBlock>(machines::modern(4), 0, 3, SECTION_NS);
    assert!(spent(&sleeps, Activity::Blocked) > Time::nanos(SECTION_NS));
    assert!(spent(&sleeps, Activity::Spinning) < Time::nanos(SECTION_NS));
}

#[test]
fn the_cost_of_a_sleep_is_measured_in_virtual_time() {
    let costs = |wakeup: Time| {
        let mut machine = machines::modern(2);
        (machine.scheduling.kick, machine.scheduling.wakeup) = (Time::ZERO, wakeup);
        let run: Run<_> = Simulation::new(machine)
            .run(|| {
                let before = cost::current();
                let mutex = Arc::new(PolicyMutex::<_, AlwaysBlock>::new(()));
                for _ in 0..9 {
                    let guard = mutex.lock();
                    let sleeper = {
                        let mutex = mutex.clone();
                        thread::spawn(move || drop(mutex.lock()))
                    };
                    stanchion_machine::work(1_000_000);
                    drop(guard);
                    sleeper.join().unwrap();
                }
                (before, cost::current())
            })
            .unwrap();
        run.result
    };
    let (slow, quick) = (costs(Time::micros(90)), costs(Time::nanos(1)));
    assert_eq!(slow.0, quick.0, "each run begins with the first guess");
    assert!(slow.1 > slow.0, "{slow:?}");
    assert!(quick.1 < slow.1, "{quick:?}, {slow:?}");
}

#[test]
fn deadlines_pass_in_virtual_time() {
    let body = || {
        let mutex = Arc::new(Mutex::new(0));
        let holder = {
            let mutex = mutex.clone();
            thread::spawn(move || {
                let mut count = mutex.lock();
                stanchion_machine::work(100_000_000);
                *count += 1;
            })
        };
        stanchion_machine::work(1_000_000);
        let start = clock::now();
        assert!(mutex.try_lock_for(Duration::from_millis(20)).is_none());
        let waited = clock::now().nanos_since(start);
        assert!((20_000_000..20_100_000).contains(&waited), "{waited}");
        let moment = clock::moment_after(Duration::from_secs(1)).unwrap();
        *mutex.try_lock_until(moment).expect("the holder is done by then") += 1;
        holder.join().unwrap();
        assert_eq!(*mutex.lock(), 2);
    };
    Simulation::new(machines::modern(2)).run(body).unwrap();
}

#[test]
fn a_thread_that_locks_twice_is_told_so() {
    let failure = Simulation::new(machines::modern(1)).run(|| {
        let mutex = Mutex::new(());
        let _guard = mutex.lock();
        drop(mutex.lock());
    });
    let failure = failure.unwrap_err().to_string();
    assert!(failure.contains("this thread already holds the mutex"), "{failure}");
}

#[test]
fn two_locks_in_two_orders_are_a_deadlock_with_names() {
    let failure = Simulation::new(machines::modern(2)).run(|| {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let philosopher = |name: &str, forward: bool| {
            let locks = locks.clone();
            let dine = move || {
                let (first, second) =
                    if forward { (&locks.0, &locks.1) } else { (&locks.1, &locks.0) };
                let _first = first.lock();
                stanchion_machine::work(1_000_000);
                let _second = second.lock();
            };
            thread::Builder::new().name(name.into()).spawn(dine).unwrap()
        };
        let (plato, kant) = (philosopher("plato", true), philosopher("kant", false));
        plato.join().unwrap();
        kant.join().unwrap();
    });
    let failure = failure.unwrap_err().to_string();
    assert!(failure.contains("'plato' is parked"), "{failure}");
    assert!(failure.contains("'kant' is parked"), "{failure}");
}

/// The table of names is the run's own, and ends with it.
#[test]
fn a_name_that_is_kept_outlives_its_run() {
    let name = || Simulation::new(machines::modern(1)).run(|| waits::intern("peg 3")).unwrap();
    let (first, second) = (name().result, name().result);
    assert_eq!((first, second), ("peg 3", "peg 3"));
    assert!(std::ptr::eq(first, second));
}
