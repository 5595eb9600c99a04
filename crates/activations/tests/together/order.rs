//! The order in which ready threads run: for each kind of ready thread, how many turns of other
//! threads come before it. A turn is what one thread runs between two scheduling points.
//!
//! The counts are of turns and not of time. On two processors, and where a thread comes back from
//! the kernel, a kernel thread that the system does not run for a while lets the others take more
//! turns; so those tests take the median or a quartile.

use std::hint::spin_loop;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use stanchion_activations::Priority::{High, Low, Normal};
use stanchion_activations::{
    Builder, JoinHandle, Priority, Runtime, Thread, current, park, spawn, yield_now,
};

/// Longer than a kernel thread keeps its processor while another one waits for that.
const LONG: Duration = Duration::from_micros(100);

/// As many rounds as a median is taken of.
const ROUNDS: usize = 15;

/// A new thread runs after at most so many turns of threads that have begun and do not yield.
const BEGUN_IN_A_ROW: usize = 8;

/// A kernel thread without a processor gets one after at most so many turns, however short they
/// are.
const SHORT_TURNS: usize = 61;

/// The turns that the threads of a test have taken, and how many they are to take.
#[derive(Clone)]
struct Turns(Arc<(AtomicUsize, AtomicUsize)>);

impl Default for Turns {
    fn default() -> Self {
        Self::up_to(usize::MAX)
    }
}

/// Stops the turns when it is dropped, also by a test that fails.
struct Stop(Turns);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Turns {
    fn up_to(most: usize) -> Self {
        Self(Arc::new((AtomicUsize::new(0), AtomicUsize::new(most))))
    }

    fn count(&self) -> usize {
        self.0.0.load(SeqCst)
    }

    /// Takes a turn that lasts for `time`, of which nothing is counted before the end.
    fn take(&self, time: Duration) {
        let started = Instant::now();
        while started.elapsed() < time {
            spin_loop();
        }
        self.0.0.fetch_add(1, SeqCst);
    }

    fn stop(&self) {
        self.0.1.store(0, SeqCst);
    }

    fn goes_on(&self) -> bool {
        self.count() < self.0.1.load(SeqCst)
    }

    /// Starts threads that take one turn after the other, and yield after each; all of them have
    /// begun.
    fn yielders(&self, count: usize, time: Duration) -> Vec<JoinHandle<()>> {
        let begun = Arc::new(AtomicUsize::new(0));
        let start = || {
            let (turns, begun) = (self.clone(), begun.clone());
            spawn(move || {
                begun.fetch_add(1, SeqCst);
                while turns.goes_on() {
                    turns.take(time);
                    yield_now();
                }
            })
        };
        let threads = (0..count).map(|_| start()).collect();
        while begun.load(SeqCst) < count {
            yield_now();
        }
        threads
    }

    /// Starts a new thread that takes one turn, and starts the next one before it ends.
    fn chain(&self, time: Duration) {
        let turns = self.clone();
        drop(spawn(move || {
            if turns.goes_on() {
                turns.take(time);
                turns.chain(time);
            }
        }));
    }
}

/// Returns what the rounds return, in order of size.
fn sorted(mut round: impl FnMut() -> usize) -> [usize; ROUNDS] {
    let mut counts = [(); ROUNDS].map(|()| round());
    counts.sort_unstable();
    counts
}

/// The median of what `round` returns.
fn median(round: impl FnMut() -> usize) -> usize {
    sorted(round)[ROUNDS / 2]
}

/// Returns the median of the counts on one processor, and the first quartile on several. There
/// other threads take turns until the kernel runs the thread that is back from its block. On a busy
/// machine that takes milliseconds. The least would not do: without a rule one round of fifteen is
/// short by chance.
fn usual(counts: [usize; ROUNDS], processors: usize) -> usize {
    counts[if processors == 1 { ROUNDS / 2 } else { ROUNDS / 4 }]
}

fn runtime(processors: usize) -> Runtime {
    Runtime::new(processors).unwrap()
}

/// One processor that stays with a thread which blocks, so that the order of the turns is exact.
fn one_processor() -> Runtime {
    Runtime::builder().processors(1).activations(false).build().unwrap()
}

/// Returns the turns that others take from when a new thread is ready until it begins.
fn turns_before_a_new_thread(turns: &Turns) -> usize {
    let (counts, began_at) = (turns.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
    let begins = began_at.clone();
    let ready_at = turns.count();
    let new = spawn(move || begins.store(counts.count(), SeqCst));
    while began_at.load(SeqCst) == usize::MAX {
        turns.take(Duration::ZERO);
        yield_now();
    }
    new.join().unwrap();
    began_at.load(SeqCst) - ready_at
}

#[test]
fn a_yield_lets_a_new_thread_run() {
    one_processor().run(|| {
        for _ in 0..100 {
            assert_eq!(turns_before_a_new_thread(&Turns::default()), 1);
        }
    });
}

#[test]
fn a_new_thread_runs_after_the_yield_of_any_thread() {
    for others in [1, 2, 7] {
        one_processor().run(move || {
            let turns = Turns::default();
            let _stop = Stop(turns.clone());
            let yielders = turns.yielders(others, Duration::ZERO);
            for _ in 0..100 {
                let count = turns_before_a_new_thread(&turns);
                assert!(count <= 2, "{count} turns beside {others} threads that yield");
            }
            turns.stop();
            yielders.into_iter().for_each(|yielder| yielder.join().unwrap());
        });
    }
}

#[test]
fn a_new_thread_runs_beside_threads_that_yield_on_two_processors() {
    let count = runtime(2).run(|| {
        let turns = Turns::default();
        let _stop = Stop(turns.clone());
        let yielders = turns.yielders(4, LONG);
        let count = median(|| turns_before_a_new_thread(&turns));
        turns.stop();
        yielders.into_iter().for_each(|yielder| yielder.join().unwrap());
        count
    });
    assert!(count <= 2 * 2, "{count} turns on two processors");
}

/// Passes turns between two threads that never yield, until one of them is told to stop.
fn ping_pong(turns: &Turns, turn: &AtomicUsize, me: usize, other: &Thread) {
    while turns.goes_on() {
        while turn.load(SeqCst) % 2 != me && turns.goes_on() {
            park();
        }
        turns.take(Duration::ZERO);
        turn.fetch_add(1, SeqCst);
        other.unpark();
    }
    other.unpark();
}

#[test]
fn a_new_thread_runs_beside_threads_that_wake_each_other() {
    one_processor().run(|| {
        for _ in 0..100 {
            let turns = Turns::default();
            let turn = Arc::new(AtomicUsize::new(0));
            let first = current();
            let second = {
                let (turns, turn) = (turns.clone(), turn.clone());
                spawn(move || ping_pong(&turns, &turn, 1, &first))
            };
            // It begins, and parks: both have begun.
            yield_now();
            let (stops, ready_at) = (turns.clone(), turns.count());
            let new = spawn(move || {
                stops.stop();
                stops.count()
            });
            ping_pong(&turns, &turn, 0, second.thread());
            let count = new.join().unwrap() - ready_at;
            assert!(count <= BEGUN_IN_A_ROW, "{count} turns");
            second.join().unwrap();
        }
    });
}

#[test]
fn a_yielded_thread_runs_after_one_new_thread() {
    one_processor().run(|| {
        let turns = Turns::default();
        let _stop = Stop(turns.clone());
        (0..3).for_each(|_| turns.chain(Duration::ZERO));
        for _ in 0..100 {
            let before = turns.count();
            yield_now();
            assert_eq!(turns.count() - before, 1);
        }
        turns.stop();
    });
}

#[test]
fn each_of_several_yielded_threads_runs_after_the_others_and_as_many_new_ones() {
    one_processor().run(|| {
        let turns = Turns::default();
        let _stop = Stop(turns.clone());
        (0..3).for_each(|_| turns.chain(Duration::ZERO));
        let others = turns.yielders(4, Duration::ZERO);
        for _ in 0..100 {
            let before = turns.count();
            yield_now();
            let count = turns.count() - before;
            assert!(count <= 2 * others.len() + 1, "{count} turns");
        }
        turns.stop();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// Starts a thread that blocks in the kernel until other threads have run for it, and then yields.
/// They stop after `most` turns. Returns what `figure` makes of the turns before the yield, those
/// after it and `most`, in order of size.
fn turns_after_a_block(
    processors: usize,
    time: Duration,
    priority: Priority,
    most: usize,
    figure: fn(usize, usize, usize) -> usize,
) -> [usize; ROUNDS] {
    let runtime = runtime(processors);
    sorted(|| {
        let turns = Turns::up_to(most);
        let _stop = Stop(turns.clone());
        let (counts, (mut here, mut there)) = (turns.clone(), UnixStream::pair().unwrap());
        let (begins, has_begun) = std::sync::mpsc::channel();
        let returns = Builder::new().on(&runtime).priority(priority).spawn(move || {
            begins.send(()).unwrap();
            there.read_exact(&mut [0]).unwrap();
            let before = counts.count();
            yield_now();
            figure(before, counts.count(), most)
        });
        // A thread of low priority would not begin beside the others.
        has_begun.recv().unwrap();
        let counts = turns.clone();
        let beside = runtime.spawn(move || {
            // More chains than processors: none of them is ever idle.
            (0..8 * processors).for_each(|_| counts.chain(time));
            while counts.count() < 3 {
                yield_now();
            }
            here.write_all(&[1]).unwrap();
        });
        beside.join().unwrap();
        returns.join().unwrap()
    })
}

/// Returns the turns that others take from the yield on. If all turns are over, the thread has
/// waited for all of them, though that may have been before its yield.
fn between(before: usize, after: usize, most: usize) -> usize {
    if after < most { after - before } else { most }
}

#[test]
fn a_thread_back_from_a_block_goes_on_before_new_threads() {
    for processors in [1, 2] {
        let counts = turns_after_a_block(processors, LONG, Normal, 10_000, between);
        let count = usual(counts, processors);
        assert!(count <= 2 * processors, "{count} turns on {processors} processors");
    }
}

#[test]
fn a_thread_back_from_a_block_goes_on_soon_beside_short_turns() {
    for processors in [1, 2] {
        let counts = turns_after_a_block(processors, Duration::ZERO, Normal, 1_000_000, between);
        let count = usual(counts, processors);
        let most = SHORT_TURNS * processors;
        assert!(count <= most, "{count} turns on {processors} processors");
    }
}

#[test]
fn high_priority_thread_continues_at_the_next_scheduling_point_after_a_block() {
    for processors in [1, 2] {
        let time = Duration::from_micros(10);
        let counts = turns_after_a_block(processors, time, High, 1_000_000, between);
        let count = usual(counts, processors);
        assert!(count <= 3 * processors, "{count} turns on {processors} processors");
    }
}

#[test]
fn a_thread_of_low_priority_back_from_a_block_waits_until_no_other_is_ready() {
    const TURNS: usize = 2_000;
    for processors in [1, 2] {
        let left = |_, after, most: usize| most.saturating_sub(after);
        let counts = turns_after_a_block(processors, Duration::from_micros(5), Low, TURNS, left);
        let count = counts[ROUNDS / 2];
        assert_eq!(count, 0, "turns to go, of {TURNS}, on {processors} processors");
    }
}

/// Threads that come back from blocks again and again, and new threads beside them: neither keeps
/// the other out.
#[test]
fn new_threads_run_beside_many_that_come_back_from_blocks() {
    // Each of them may take a turn without a processor of the runtime, between its block and its
    // next scheduling point.
    const RETURNING: usize = 40;
    for processors in [1, 2] {
        let runtime = runtime(processors);
        let turns = Turns::default();
        let _stop = Stop(turns.clone());
        let returning: Vec<_> = (0..RETURNING)
            .map(|_| {
                let turns = turns.clone();
                runtime.spawn(move || {
                    while turns.goes_on() {
                        std::thread::sleep(Duration::from_micros(200));
                        turns.take(LONG);
                        yield_now();
                    }
                })
            })
            .collect();
        let count = median(|| {
            let until = turns.count() + 50;
            while turns.count() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            let (counts, before) = (turns.clone(), turns.count());
            runtime.spawn(move || counts.count()).join().unwrap() - before
        });
        turns.stop();
        returning.into_iter().for_each(|thread| thread.join().unwrap());
        let most = processors * (BEGUN_IN_A_ROW + RETURNING);
        assert!(count <= most, "{count} turns on {processors} processors");
    }
}
