//! Values that threads hand to other threads, through a queue or a channel. The families are:
//!
//! - `between two threads`: a producer and a consumer, each on a processor of its own. A thread
//!   that waits tries again at once, or after a pause hint.
//! - `pipeline`: two producers, two workers and one consumer, with a channel before and behind the
//!   workers. A thread waits as the channel does.
//! - `pipeline without a bound`: the same with channels that always have room.
//!
//! Every contestant hands over the same number of values. The regret is against the best peer.

use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::queue::{
    FaaArrayQueue, LockedQueue, LockedRing, NikolaevQueue, SegmentedQueue,
};
use stanchion_lockfree::{Blocking, ConcurrentQueue};

use crate::cell::{Against, Cell, Column, Contestant, Figures};
use crate::race::race;
use crate::work::process_time;
use crate::{Effort, Options, Report};

/// The columns of a run's figures.
const COLUMNS: &[Column] = &[Column::median("ns/value", 1), Column::median("CPU ns", 1)];

/// The number of rounds of a contest.
const ROUNDS: usize = 15;

/// The capacities of the queues: one cell each.
const CAPACITIES: [usize; 3] = [3, 64, 1024];

/// The number of values that one contestant hands over in one run.
const VALUES: usize = 100_000;

/// The value that tells the receivers of a crossbeam channel that no more values come.
const END: u64 = u64::MAX;

/// A queue with calls that do not wait. One without a bound ignores its capacity.
trait Queue: Sync {
    fn with_capacity(capacity: usize) -> Self;
    /// Returns false if the queue is full.
    fn put(&self, value: u64) -> bool;
    fn take(&self) -> Option<u64>;
}

/// A channel. One without a bound ignores its capacity.
trait Channel: Sync {
    fn with_capacity(capacity: usize) -> Self;
    fn send(&self, value: u64);
    /// Returns `None` once the channel is closed and empty.
    fn receive(&self) -> Option<u64>;
    fn close(&self);
}

/// A mutex around a sequential queue with a bound.
struct LockedDeque {
    /// The values in the queue.
    values: parking_lot::Mutex<VecDeque<u64>>,
    /// The most values in the queue.
    capacity: usize,
}

impl Queue for LockedDeque {
    fn with_capacity(capacity: usize) -> Self {
        Self { values: parking_lot::Mutex::new(VecDeque::with_capacity(capacity)), capacity }
    }

    fn put(&self, value: u64) -> bool {
        let mut values = self.values.lock();
        let room = values.len() < self.capacity;
        if room {
            values.push_back(value);
        }
        room
    }

    fn take(&self) -> Option<u64> {
        self.values.lock().pop_front()
    }
}

macro_rules! queues {
    ($($queue:ty: $make:expr, $put:ident, $take:expr;)+) => {$(
        impl Queue for $queue {
            fn with_capacity(capacity: usize) -> Self {
                $make(capacity)
            }

            fn put(&self, value: u64) -> bool {
                self.$put(value).is_ok()
            }

            fn take(&self) -> Option<u64> {
                $take(self)
            }
        }
    )+};
}

queues! {
    LockedRing<u64>: Self::with_capacity, try_push, Self::pop;
    NikolaevQueue<u64>: Self::with_capacity, try_push, Self::pop;
    SegmentedQueue<u64>: |_| Self::new(), try_push, Self::pop;
    LockedQueue<u64, Barging>: |_| Self::default(), try_push, Self::pop;
    FaaArrayQueue<u64>: |_| Self::new(), try_push, Self::pop;
    crossbeam_queue::ArrayQueue<u64>: Self::new, push, Self::pop;
    concurrent_queue::ConcurrentQueue<u64>: Self::bounded, push, |queue: &Self| queue.pop().ok();
}

impl<Q: ConcurrentQueue<Item = u64> + Queue> Channel for Blocking<Q> {
    fn with_capacity(capacity: usize) -> Self {
        Self::new(Q::with_capacity(capacity))
    }

    fn send(&self, value: u64) {
        assert!(self.push(value).is_ok(), "closed before the last value");
    }

    fn receive(&self) -> Option<u64> {
        self.pop().ok()
    }

    fn close(&self) {
        Self::close(self);
    }
}

/// A channel of crossbeam, with a bound or without.
struct Crossbeam<const BOUNDED: bool>(
    crossbeam_channel::Sender<u64>,
    crossbeam_channel::Receiver<u64>,
);

impl<const BOUNDED: bool> Channel for Crossbeam<BOUNDED> {
    fn with_capacity(capacity: usize) -> Self {
        let (sender, receiver) = if BOUNDED {
            crossbeam_channel::bounded(capacity)
        } else {
            crossbeam_channel::unbounded()
        };
        Self(sender, receiver)
    }

    fn send(&self, value: u64) {
        assert!(self.0.send(value).is_ok(), "closed before the last value");
    }

    fn receive(&self) -> Option<u64> {
        let value = self.1.recv().ok().filter(|&value| value != END);
        if value.is_none() {
            // Pass it on to the next receiver. The senders have stopped, so there is room.
            self.send(END);
        }
        value
    }

    fn close(&self) {
        self.send(END);
    }
}

/// Returns the cells of all families.
#[must_use]
pub fn cells() -> Vec<Cell> {
    families().into_iter().flat_map(|(_, cells)| cells).collect()
}

/// Runs all families.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    let mut report = Report::default();
    for (name, cells) in families() {
        race(name, cells, ROUNDS, options, progress, &mut report);
    }
    report
}

/// A way to hand over that many values, in queues of that capacity.
type Run = fn(usize, u64) -> Figures;

/// Returns the name and the cells of each family.
fn families() -> [(&'static str, Vec<Cell>); 4] {
    let pipelines: [(bool, &str, Run); 3] = [
        (false, "Blocking<LockedRing>", pipeline::<Blocking<LockedRing<u64>>>),
        (false, "Blocking<NikolaevQueue>", pipeline::<Blocking<NikolaevQueue<u64>>>),
        (true, "crossbeam-channel", pipeline::<Crossbeam<true>>),
    ];
    let unbounded: [(bool, &str, Run); 4] = [
        (false, "channel", pipeline::<Blocking<SegmentedQueue<u64>>>),
        (false, "Blocking<LockedQueue<Barging>>", pipeline::<Blocking<LockedQueue<u64, Barging>>>),
        (false, "Blocking<FaaArrayQueue>", pipeline::<Blocking<FaaArrayQueue<u64>>>),
        (true, "crossbeam-channel", pipeline::<Crossbeam<false>>),
    ];
    let places = CAPACITIES.map(Some);
    let [at_once, pause] = ["between two threads, at once", "between two threads, pause"];
    let pipeline = "pipeline of 2, 2 and 1 threads";
    [
        (at_once, family(at_once, &places, between::<false>())),
        (pause, family(pause, &places, between::<true>())),
        ("pipeline", family(pipeline, &places, pipelines)),
        ("pipeline without a bound", family(pipeline, &[None], unbounded)),
    ]
}

fn between<const PAUSE: bool>() -> [(bool, &'static str, Run); 5] {
    [
        (false, "LockedRing", stream::<LockedRing<u64>, PAUSE>),
        (false, "NikolaevQueue", stream::<NikolaevQueue<u64>, PAUSE>),
        (true, "crossbeam ArrayQueue", stream::<crossbeam_queue::ArrayQueue<u64>, PAUSE>),
        (
            true,
            "concurrent-queue, bounded",
            stream::<concurrent_queue::ConcurrentQueue<u64>, PAUSE>,
        ),
        (true, "parking_lot Mutex<VecDeque>", stream::<LockedDeque, PAUSE>),
    ]
}

/// Returns a cell for each of `places`, where `None` is no bound.
fn family<const N: usize>(
    name: &str,
    places: &[Option<usize>],
    entrants: [(bool, &'static str, Run); N],
) -> Vec<Cell> {
    let of = |&places: &Option<usize>| {
        let contestants = entrants.map(|(is_peer, name, run)| {
            let capacity = places.unwrap_or(usize::MAX);
            let run = move |effort: Effort| run(capacity, effort.count(VALUES) as u64);
            if is_peer { Contestant::peer(name, run) } else { Contestant::new(name, run) }
        });
        let bound = places.map_or("no bound".into(), |places| format!("{places} places"));
        Cell::new(format!("{name}, {bound}"), COLUMNS, Against::BestPeer, contestants.into())
    };
    places.iter().map(of).collect()
}

/// Hands values from one thread to another.
fn stream<Q: Queue, const PAUSE: bool>(capacity: usize, values: u64) -> Figures {
    let (queue, ready) = (Q::with_capacity(capacity), Barrier::new(2));
    let again = || {
        if PAUSE {
            spin_loop();
        }
    };
    timed(values, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                pin(1);
                ready.wait();
                for expected in 0..values {
                    let value = loop {
                        match queue.take() {
                            Some(value) => break value,
                            None => again(),
                        }
                    };
                    assert_eq!(value, expected, "out of order");
                }
            });
            scope.spawn(|| {
                pin(0);
                ready.wait();
                for value in 0..values {
                    while !queue.put(value) {
                        again();
                    }
                }
            });
        });
    })
}

/// Hands values from two threads to two others, and from those two to one.
fn pipeline<C: Channel>(capacity: usize, values: u64) -> Figures {
    let (before, behind) = (C::with_capacity(capacity), C::with_capacity(capacity));
    timed(values, || {
        let sum = thread::scope(|scope| {
            let produce = |from: u64| {
                let before = &before;
                move || (from..values).step_by(2).for_each(|value| before.send(value))
            };
            let producers = [scope.spawn(produce(0)), scope.spawn(produce(1))];
            let work = || {
                while let Some(value) = before.receive() {
                    behind.send(black_box(value));
                }
            };
            let workers = [scope.spawn(work), scope.spawn(work)];
            let consumer = scope.spawn(|| {
                let mut sum = 0;
                while let Some(value) = behind.receive() {
                    sum += value;
                }
                sum
            });
            producers.into_iter().for_each(|producer| producer.join().expect("no panic"));
            before.close();
            workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
            behind.close();
            consumer.join().expect("no panic")
        });
        assert_eq!(sum, values * (values - 1) / 2, "values were lost or invented");
    })
}

fn timed(values: u64, run: impl FnOnce()) -> Figures {
    let (start, processor) = (Instant::now(), process_time());
    run();
    let (elapsed, processor) = (start.elapsed().as_nanos(), process_time() - processor);
    vec![elapsed as f64 / values as f64, processor as f64 / values as f64]
}

/// Pins the calling thread to one processor.
fn pin(index: usize) {
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    if let Some(&processor) = processors.get(index % processors.len().max(1)) {
        core_affinity::set_for_current(processor);
    }
}
