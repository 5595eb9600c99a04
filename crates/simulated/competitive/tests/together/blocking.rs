//! The other locks on the simulated machines: no thread is forgotten, no thread gets in that must
//! not, and the run is the same every time.
//!
//! Each scene, its threads, and the faults that it would find:
//!
//! - A bounded buffer over `Condvar`, producers and consumers: a notification reaches no thread,
//!   which is a deadlock; an item is lost or comes twice.
//! - `RwLock`, readers, writers and an upgrade: a writer beside another thread; a reader sees half
//!   a write.
//! - `Semaphore`, more threads than permits: more inside than permits; a permit is lost.
//! - `EventCount` over a queue, producers and consumers: a consumer sleeps while there is work.
//! - `OnceLock`, all at once: it is made twice, or seen half made.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use stanchion_competitive::lock_api;
use stanchion_competitive::{
    Condvar, EventCount, Mutex, OnceLock, RwLock, RwLockUpgradableReadGuard, Semaphore,
};
use stanchion_competitive_simulated as stanchion_competitive;
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{clock, thread};
use stanchion_simulator::{Machine, Simulation, Statistics, Time, machines};

/// The scene on some machines, with slices that end in the middle of everything; twice on one of
/// them.
fn on_machines(scene: fn()) {
    let run = |machine: &Machine, seed: u64| -> Statistics {
        let run = Simulation::new(machine.clone()).seed(seed).run(scene);
        let name = &machine.name;
        run.unwrap_or_else(|failure| panic!("{name}, seed {seed}: {failure}")).statistics
    };
    for processors in [1, 2, 8] {
        for mut machine in [machines::modern(processors), machines::firefly(), machines::makbilan()]
        {
            machine.processors = processors;
            run(&machine, 0);
        }
    }
    for seed in 0..40 {
        let mut machine = machines::modern(2 + seed as usize % 4);
        machine.scheduling.quantum = Time::nanos(4_000 + 1_237 * seed);
        machine.scheduling.spawn = Time::nanos(100 * seed);
        let first = run(&machine, seed);
        if seed % 8 == 0 {
            assert_eq!(first, run(&machine, seed), "the same run twice");
        }
    }
}

/// Some of the run's time, up to so many nanoseconds: the order of things is the seed's.
fn compute(nanos: u64) {
    stanchion_machine::work(stanchion_machine::hint::entropy() % nanos);
}

fn spawn<S: Send + Sync + 'static>(scene: &Arc<S>, body: fn(&S)) -> thread::JoinHandle<()> {
    let scene = scene.clone();
    thread::spawn(move || body(&scene))
}

#[test]
fn a_bounded_buffer_loses_nothing() {
    struct Buffer {
        /// The items. Written by producers and consumers, under the mutex.
        items: Mutex<VecDeque<u32>>,
        /// Notified by producers.
        filled: Condvar,
        /// Notified by consumers.
        emptied: Condvar,
        /// The sum of the items that came out. Written by consumers.
        sum: AtomicU32,
    }

    fn produce(buffer: &Buffer) {
        for item in 1..=10 {
            compute(1_000);
            let mut items = buffer.items.lock();
            buffer.emptied.wait_while(&mut items, |items| items.len() == 2);
            items.push_back(item);
            drop(items);
            buffer.filled.notify_one();
        }
    }

    fn consume(buffer: &Buffer) {
        for _ in 1..=10 {
            let mut items = buffer.items.lock();
            buffer.filled.wait_while(&mut items, |items| items.is_empty());
            let item = items.pop_front().expect("it was not empty");
            drop(items);
            buffer.emptied.notify_one();
            buffer.sum.fetch_add(item, Ordering::Relaxed);
        }
    }

    on_machines(|| {
        let buffer = Arc::new(Buffer {
            items: Mutex::new(VecDeque::new()),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            sum: AtomicU32::new(0),
        });
        let bodies = [produce, consume, consume, produce, produce, consume];
        for thread in bodies.map(|body| spawn(&buffer, body)) {
            thread.join().unwrap();
        }
        assert_eq!(buffer.sum.load(Ordering::Relaxed), 3 * 55);
    });
}

#[test]
fn a_condition_times_out_in_virtual_time() {
    let body = || {
        let (mutex, never) = (Mutex::new(()), Condvar::new());
        let start = clock::now();
        assert!(never.wait_for(&mut mutex.lock(), Duration::from_secs(3)).timed_out());
        let moment = clock::moment_after(Duration::from_secs(4)).unwrap();
        assert!(never.wait_until(&mut mutex.lock(), moment).timed_out());
        let waited = clock::now().nanos_since(start);
        assert!((7_000_000_000..7_001_000_000).contains(&waited), "{waited}");
    };
    Simulation::new(machines::modern(1)).run(body).unwrap();
}

#[test]
fn writers_are_alone() {
    struct Pair(Cell<u32>, Cell<u32>);
    // SAFETY: no thread uses a cell but under the lock; the threads of a simulation are one of the
    // system's anyway.
    unsafe impl Sync for Pair {}

    fn read(pair: &RwLock<Pair>) {
        for _ in 0..8 {
            let pair = pair.read();
            let before = pair.0.get();
            compute(1_000);
            assert_eq!((before, before), (pair.0.get(), pair.1.get()), "half a write");
        }
    }

    fn write(pair: &RwLock<Pair>) {
        for _ in 0..6 {
            add(&pair.write());
            compute(600);
        }
    }

    fn upgrade(pair: &RwLock<Pair>) {
        for _ in 0..6 {
            let read = pair.upgradable_read();
            let before = read.0.get();
            compute(400);
            let write = RwLockUpgradableReadGuard::upgrade(read);
            assert_eq!(write.0.get(), before, "another thread wrote before the upgrade");
            add(&write);
        }
    }

    fn add(pair: &Pair) {
        pair.0.set(pair.0.get() + 1);
        compute(800);
        pair.1.set(pair.1.get() + 1);
    }

    on_machines(|| {
        let pair = Arc::new(RwLock::new(Pair(Cell::new(0), Cell::new(0))));
        let bodies = [read, write, read, upgrade, write, read];
        for thread in bodies.map(|body| spawn(&pair, body)) {
            thread.join().unwrap();
        }
        assert_eq!(pair.read().0.get(), 18);
    });
}

#[test]
fn no_more_get_in_than_permits() {
    struct Room {
        /// The semaphore.
        semaphore: Semaphore,
        /// The number of threads inside. Written by every thread.
        inside: AtomicU32,
    }

    fn visit(room: &Room) {
        for count in [1, 2, 1, 3] {
            let permits = room.semaphore.acquire_many(count);
            let inside = room.inside.fetch_add(count, Ordering::Relaxed) + count;
            assert!(inside <= 3, "{inside} inside");
            compute(1_400);
            room.inside.fetch_sub(count, Ordering::Relaxed);
            drop(permits);
        }
    }

    on_machines(|| {
        let room = Arc::new(Room { semaphore: Semaphore::new(3), inside: AtomicU32::new(0) });
        for thread in [visit as fn(&Room); 7].map(|body| spawn(&room, body)) {
            thread.join().unwrap();
        }
        assert_eq!(room.semaphore.available_permits(), 3);
        let all = room.semaphore.acquire_many(3);
        assert!(room.semaphore.try_acquire_for(Duration::from_millis(1)).is_none());
        drop(all);
    });
}

#[test]
fn events_are_not_missed() {
    struct Work {
        /// The number of jobs. Written by every thread, under the mutex.
        jobs: lock_api::Mutex<stanchion_competitive::RawPolicyMutex, u32>,
        /// The event count. Notified by producers.
        events: EventCount,
        /// The number of jobs that are done. Written by consumers.
        done: AtomicU32,
    }

    fn take(work: &Work) -> bool {
        let mut jobs = work.jobs.lock();
        let some = *jobs > 0;
        *jobs -= u32::from(some);
        some
    }

    fn consume(work: &Work) {
        for _ in 0..6 {
            while !take(work) {
                // Time for a job to come without a notification.
                compute(4_000);
                let key = work.events.prepare();
                if take(work) {
                    work.events.cancel(key);
                    break;
                }
                work.events.wait(key);
            }
            work.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn produce(work: &Work) {
        for _ in 0..9 {
            // Longer than it takes to wake up, so that consumers do sleep.
            compute(30_000);
            *work.jobs.lock() += 1;
            work.events.notify_one();
        }
    }

    on_machines(|| {
        let work = Arc::new(Work {
            jobs: lock_api::Mutex::new(0),
            events: EventCount::new(),
            done: AtomicU32::new(0),
        });
        let bodies = [consume, produce, consume, consume, produce];
        for thread in bodies.map(|body| spawn(&work, body)) {
            thread.join().unwrap();
        }
        assert_eq!(work.done.load(Ordering::Relaxed), 18);
        assert_eq!(work.events.registered(), 0);
    });
}

#[test]
fn it_is_made_once() {
    struct Lazy {
        /// The value. Written by the thread that makes it.
        value: OnceLock<(u32, u32)>,
        /// The number of times that it was made. Written by the thread that makes it.
        made: AtomicU32,
    }

    fn ask(lazy: &Lazy) {
        let value = lazy.value.get_or_init(|| {
            stanchion_machine::work(20_000);
            (lazy.made.fetch_add(1, Ordering::Relaxed), 7)
        });
        assert_eq!(*value, (0, 7));
    }

    on_machines(|| {
        let lazy = Arc::new(Lazy { value: OnceLock::new(), made: AtomicU32::new(0) });
        for thread in [ask as fn(&Lazy); 6].map(|body| spawn(&lazy, body)) {
            thread.join().unwrap();
        }
        assert_eq!(lazy.made.load(Ordering::Relaxed), 1);
    });
}
