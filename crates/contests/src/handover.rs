//! Values that threads hand to other threads, through a bounded queue or a channel. The families
//! are:
//!
//! - `between two threads`: a producer and a consumer, each on a processor of its own. A thread
//!   that waits tries again at once, or after a pause hint.
//! - `pipeline`: two producers, two workers and one consumer, with a channel before and behind the
//!   workers. A thread waits as the channel does.
//!
//! In each round every contestant hands over the same number of values. Figures are medians of the
//! rounds.

use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use stanchion_lockfree::queue::{LockedRing, NikolaevQueue};
use stanchion_lockfree::{Blocking, ConcurrentQueue};

use crate::contest::Options;

/// The capacities of the queues: one cell each.
const CAPACITIES: [usize; 3] = [3, 64, 1024];

/// The number of values that one contestant hands over in one round.
const VALUES: u64 = 100_000;

/// The value that tells the receivers of a crossbeam channel that no more values come.
const END: u64 = u64::MAX;

/// A bounded queue with calls that do not wait.
trait Queue: Sync {
    fn with_capacity(capacity: usize) -> Self;
    /// Returns false if the queue is full.
    fn put(&self, value: u64) -> bool;
    fn take(&self) -> Option<u64>;
}

/// A bounded channel.
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
    ($($queue:ty: $make:ident, $put:ident, $take:expr;)+) => {$(
        impl Queue for $queue {
            fn with_capacity(capacity: usize) -> Self {
                Self::$make(capacity)
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
    LockedRing<u64>: with_capacity, try_push, Self::pop;
    NikolaevQueue<u64>: with_capacity, try_push, Self::pop;
    crossbeam_queue::ArrayQueue<u64>: new, push, Self::pop;
    concurrent_queue::ConcurrentQueue<u64>: bounded, push, |queue: &Self| queue.pop().ok();
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

struct Crossbeam(crossbeam_channel::Sender<u64>, crossbeam_channel::Receiver<u64>);

impl Channel for Crossbeam {
    fn with_capacity(capacity: usize) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
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

/// The result of one contestant in one round.
#[derive(Clone, Copy)]
struct Round {
    /// The time of the round for each value.
    ns_per_value: f64,
    /// The processor time of the process for each value.
    cpu_per_value: f64,
}

/// A way to hand values over, with a function that runs one round of it.
struct Contestant {
    /// The name in tables.
    name: &'static str,
    /// True if the structures of this workspace are compared with it.
    peer: bool,
    /// Runs one round with queues of this capacity.
    run: fn(usize) -> Round,
}

/// Runs the selected cells.
pub(crate) fn run(options: &Options) {
    family("between two threads", "at once", options, &between::<false>());
    family("between two threads", "pause", options, &between::<true>());
    let pipelines = [
        Contestant {
            name: "Blocking<LockedRing>",
            peer: false,
            run: pipeline::<Blocking<LockedRing<u64>>>,
        },
        Contestant {
            name: "Blocking<NikolaevQueue>",
            peer: false,
            run: pipeline::<Blocking<NikolaevQueue<u64>>>,
        },
        Contestant { name: "crossbeam-channel", peer: true, run: pipeline::<Crossbeam> },
    ];
    family("pipeline", "2, 2 and 1 threads", options, &pipelines);
}

fn between<const PAUSE: bool>() -> [Contestant; 5] {
    [
        Contestant { name: "LockedRing", peer: false, run: stream::<LockedRing<u64>, PAUSE> },
        Contestant { name: "NikolaevQueue", peer: false, run: stream::<NikolaevQueue<u64>, PAUSE> },
        Contestant {
            name: "crossbeam ArrayQueue",
            peer: true,
            run: stream::<crossbeam_queue::ArrayQueue<u64>, PAUSE>,
        },
        Contestant {
            name: "concurrent-queue, bounded",
            peer: true,
            run: stream::<concurrent_queue::ConcurrentQueue<u64>, PAUSE>,
        },
        Contestant {
            name: "parking_lot Mutex<VecDeque>",
            peer: true,
            run: stream::<LockedDeque, PAUSE>,
        },
    ]
}

/// Runs each capacity of a family and prints a table for it.
fn family(name: &str, shape: &str, options: &Options, contestants: &[Contestant]) {
    for capacity in CAPACITIES {
        let cell = format!("{shape}, {capacity} places");
        let wanted = |contestant: &&Contestant| options.wants(name, contestant.name, &cell);
        let running: Vec<&Contestant> = contestants.iter().filter(wanted).collect();
        if running.is_empty() {
            continue;
        }
        let mut rounds = vec![Vec::new(); running.len()];
        for round in 0..options.rounds() {
            for place in 0..running.len() {
                // The order changes, so that other programs on the computer slow all contestants
                // alike.
                let which = if round % 2 == 0 { place } else { running.len() - 1 - place };
                rounds[which].push((running[which].run)(capacity));
            }
        }
        let medians: Vec<Round> = rounds.iter().map(|rounds| median(rounds)).collect();
        let peers = running.iter().zip(&medians).filter(|(contestant, _)| contestant.peer);
        let best = peers.map(|(_, round)| round.ns_per_value).fold(f64::INFINITY, f64::min);
        println!(
            "\n{:<44} {:>8} {:>7} {:>8}",
            format!("{name}/{cell}"),
            "ns/value",
            "regret",
            "CPU ns"
        );
        for (contestant, round) in running.iter().zip(&medians) {
            println!(
                "  {:<42} {:>8.1} {:>7.2} {:>8.1}",
                format!("{}{}", contestant.name, if contestant.peer { " (peer)" } else { "" }),
                round.ns_per_value,
                round.ns_per_value / best,
                round.cpu_per_value,
            );
        }
    }
}

fn median(rounds: &[Round]) -> Round {
    let of = |figure: fn(&Round) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Round {
        ns_per_value: of(|round| round.ns_per_value),
        cpu_per_value: of(|round| round.cpu_per_value),
    }
}

/// Hands values from one thread to another.
fn stream<Q: Queue, const PAUSE: bool>(capacity: usize) -> Round {
    let (queue, ready) = (Q::with_capacity(capacity), Barrier::new(2));
    let again = || {
        if PAUSE {
            spin_loop();
        }
    };
    timed(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                pin(1);
                ready.wait();
                for expected in 0..VALUES {
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
                for value in 0..VALUES {
                    while !queue.put(value) {
                        again();
                    }
                }
            });
        });
    })
}

/// Hands values from two threads to two others, and from those two to one.
fn pipeline<C: Channel>(capacity: usize) -> Round {
    let (before, behind) = (C::with_capacity(capacity), C::with_capacity(capacity));
    timed(|| {
        let sum = thread::scope(|scope| {
            let produce = |from: u64| {
                let before = &before;
                move || (from..VALUES).step_by(2).for_each(|value| before.send(value))
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
        assert_eq!(sum, VALUES * (VALUES - 1) / 2, "values were lost or invented");
    })
}

fn timed(run: impl FnOnce()) -> Round {
    let (start, processor) = (Instant::now(), process_time());
    run();
    let per_value = |time: Duration| time.as_nanos() as f64 / VALUES as f64;
    Round {
        ns_per_value: per_value(start.elapsed()),
        cpu_per_value: per_value(process_time().saturating_sub(processor)),
    }
}

/// Pins the calling thread to one processor.
fn pin(index: usize) {
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    if let Some(&processor) = processors.get(index % processors.len().max(1)) {
        core_affinity::set_for_current(processor);
    }
}

/// Returns the processor time of all threads of this process.
fn process_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is memory for the answer, which no other thread uses.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "this system has no clock of a process's processor time");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
