//! Measures what a preempted holder costs, and how much asking or fetching helps: the figures of
//! the crate's documentation.
//!
//! ```text
//! cargo run --release -p stanchion-spin --example preempted
//! ```

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::wait::Spin;
use stanchion_machine::{burn, presence, topology};
use stanchion_multiprogramming::{Account, Multiprogramming};
use stanchion_spin::contention::Polling;
use stanchion_spin::lock_api::{Mutex, RawMutex};
use stanchion_spin::{PreemptionSafe, Recovering, TestAndSet};

/// The length of one measurement.
const WINDOW: Duration = Duration::from_millis(600);
/// The length of a critical section.
const SECTION_NS: u64 = 2_000;
/// The time between two critical sections of a thread.
const ELSEWHERE_NS: u64 = 6_000;

/// Runs one thread for each processor under a pseudo-scheduler. Prints the sections for each
/// millisecond of processor time granted.
fn multiprogrammed<R: RawMutex + Send + Sync>(name: &str, level: u32) {
    let scheduler = match Multiprogramming::level(level).start() {
        Ok(scheduler) => scheduler,
        Err(refused) => return println!("{name:36} level {level}: {refused}"),
    };
    let mutex = Mutex::<R, u64>::new(0);
    let processors = topology::processors();
    let together = Barrier::new(processors.len());
    let accounts: Vec<Account> = thread::scope(|scope| {
        let workers: Vec<_> = processors
            .iter()
            .map(|&cpu| {
                let (scheduler, mutex, together) = (&scheduler, &mutex, &together);
                scope.spawn(move || {
                    let _pinned = topology::pin(cpu);
                    together.wait();
                    let member = scheduler.join().expect("not a member yet");
                    let start = Instant::now();
                    while start.elapsed() < WINDOW {
                        let mut count = mutex.lock();
                        burn(SECTION_NS);
                        *count += 1;
                        drop(count);
                        burn(ELSEWHERE_NS);
                    }
                    member.account()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    let granted: f64 = accounts.iter().map(|account| account.granted.as_secs_f64() * 1e3).sum();
    let sum = |of: fn(&Account) -> u64| accounts.iter().map(of).sum::<u64>();
    println!(
        "{name:36} level {level}: {:6.1} sections a granted ms; {} stops, {} graces, {} breaches",
        *mutex.lock() as f64 / granted,
        sum(|account| account.stops),
        sum(|account| account.graces),
        sum(|account| account.breaches),
    );
}

/// Pins the calling thread to that processor.
fn pinned(cpu: usize) -> topology::Pinned {
    topology::pin(cpu).expect("one of our own")
}

/// Runs a holder that shares its processor with a thread that only burns time, and a waiter that
/// has its own processor. Prints the longest waits.
fn beside_a_hog<R: RawMutex + Send + Sync>(name: &str) {
    let processors = topology::processors();
    let [first, .., last] = processors[..] else {
        return println!("{name:36} needs two processors");
    };
    let (mutex, over, sections) =
        (Mutex::<R, ()>::new(()), AtomicBool::new(false), AtomicU64::new(0));
    let mut waits = thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = pinned(first);
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        scope.spawn(|| {
            let _pinned = pinned(first);
            let _seen = presence::register();
            while !over.load(Relaxed) {
                let held = mutex.lock();
                burn(20 * SECTION_NS);
                drop(held);
                sections.fetch_add(1, Relaxed);
                burn(ELSEWHERE_NS);
            }
        });
        let waiter = scope.spawn(|| {
            let _pinned = pinned(last);
            let _seen = presence::register();
            let (start, mut waits) = (Instant::now(), Vec::new());
            while start.elapsed() < 4 * WINDOW {
                let begin = Instant::now();
                drop(mutex.lock());
                waits.push(begin.elapsed());
                burn(ELSEWHERE_NS);
            }
            over.store(true, Relaxed);
            waits
        });
        waiter.join().expect("it does not panic")
    });
    waits.sort_unstable();
    let over = |limit| waits.iter().filter(|&&wait| wait > limit).count();
    println!(
        "{name:36} beside a hog: {} waits, {} over 1 ms, longest {:.1?}; the holder had {} sections",
        waits.len(),
        over(Duration::from_millis(1)),
        waits.last().copied().unwrap_or_default(),
        sections.load(Relaxed),
    );
}

fn main() {
    for level in 1..=3 {
        multiprogrammed::<TestAndSet<Polling, Spin>>("TestAndSet<Polling, Spin>", level);
        multiprogrammed::<PreemptionSafe<Polling, Spin>>("PreemptionSafe<Polling, Spin>", level);
    }
    println!("switch records: {:?}", presence::status());
    beside_a_hog::<TestAndSet<Polling, Spin>>("TestAndSet<Polling, Spin>");
    beside_a_hog::<TestAndSet<Polling>>("TestAndSet<Polling>");
    beside_a_hog::<Recovering>("Recovering");
}
