//! One run: members that compute and cross, beside hogs that only compute.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::clock::now;
use stanchion_machine::topology;

use crate::cell::Figures;
use crate::statistics::quantile;
use crate::work::{Work, thread_time};

/// The circumstances of a run.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// The number of members.
    pub threads: usize,
    /// The computation between two crossings, in ns: the mean of all members.
    pub grain: u64,
    /// True if the computation rises evenly from none for the first member to twice the mean for
    /// the last one.
    pub skewed: bool,
    /// The number of threads that compute all the time.
    pub hogs: usize,
    /// True if each member is pinned to a processor, in turn.
    pub pinned: bool,
}

impl Circumstances {
    /// Returns the computation of a member.
    fn work(self, member: usize) -> Work {
        let last = self.threads as u64 - 1;
        match self.skewed && last > 0 {
            true => Work::of(2 * self.grain * member as u64 / last),
            false => Work::of(self.grain),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Crossing {
    /// The time for each crossing, in nanoseconds.
    pub nanos: f64,
    /// The processor time of all members for each crossing, in nanoseconds.
    pub processor: f64,
    /// Waits of the first member, in nanoseconds.
    pub waits: Vec<f64>,
}

impl Crossing {
    /// Returns the time, the processor time, and the 99th percentile of the waits.
    pub(crate) fn figures(mut self) -> Figures {
        vec![self.nanos, self.processor, quantile(&mut self.waits, 0.99)]
    }
}

/// A member's way to cross.
pub(crate) trait Member {
    fn cross(&mut self);
}

/// One of this many waits is timed, if waits are short.
const TIMED: u64 = 8;

/// Each wait is timed after one of this many nanoseconds.
const LONG: f64 = 100_000.0;

/// Runs `members` for about `lasting`.
pub(crate) fn run<M: Member + Send>(
    members: Vec<M>,
    cell: Circumstances,
    lasting: Duration,
) -> Crossing {
    let processors = topology::processors();
    let begin = Barrier::new(members.len() + cell.hogs);
    // The crossing after which all members end. The member that sets it has not come to that
    // crossing yet, so all members see the value after that crossing.
    let last = AtomicU64::new(u64::MAX);
    let over = AtomicBool::new(false);
    let cpu = AtomicU64::new(0);
    let (begin, last, over, cpu) = (&begin, &last, &over, &cpu);
    thread::scope(|scope| {
        for _ in 0..cell.hogs {
            scope.spawn(move || {
                begin.wait();
                let work = Work::of(1_000);
                while !over.load(Relaxed) {
                    work.compute();
                }
            });
        }
        let handles: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(index, mut member)| {
                let processor = processors[index % processors.len()];
                let work = cell.work(index);
                scope.spawn(move || {
                    let _pinned = cell.pinned.then(|| topology::pin(processor));
                    begin.wait();
                    let before = thread_time();
                    let figures = take_part(&mut member, index == 0, work, last, lasting);
                    cpu.fetch_add(thread_time() - before, Relaxed);
                    figures
                })
            })
            .collect();
        let mut figures: Vec<_> =
            handles.into_iter().map(|handle| handle.join().expect("a member ended")).collect();
        over.store(true, Relaxed);
        let (crossings, nanos, waits) = figures.swap_remove(0);
        let crossings = crossings as f64;
        let processor = cpu.load(Relaxed) as f64 / crossings;
        Crossing { nanos: nanos / crossings, processor, waits }
    })
}

/// Takes part until member 0, which leads, has measured for long enough. Returns the number of
/// crossings, their time, and some waits; nothing for all members but the leader.
pub(crate) fn take_part(
    member: &mut impl Member,
    leads: bool,
    work: Work,
    last: &AtomicU64,
    lasting: Duration,
) -> (u64, f64, Vec<f64>) {
    if leads {
        return lead(member, work, last, lasting);
    }
    follow(member, work, last);
    (0, 0.0, Vec::new())
}

fn follow(member: &mut impl Member, work: Work, last: &AtomicU64) {
    for crossing in 0.. {
        work.compute();
        member.cross();
        if crossing >= last.load(Relaxed) {
            return;
        }
    }
}

/// Runs the member that looks at the clock.
fn lead(
    member: &mut impl Member,
    work: Work,
    last: &AtomicU64,
    lasting: Duration,
) -> (u64, f64, Vec<f64>) {
    let mut waits: Vec<f64> = Vec::with_capacity(1 << 17);
    let begun = Instant::now();
    for crossing in 0.. {
        work.compute();
        let slow = work.loops > 1_000 || waits.last().is_some_and(|&wait| wait > LONG);
        if crossing % TIMED == 0 || slow {
            if begun.elapsed() >= lasting {
                last.store(crossing, Relaxed);
            }
            let arrived = now();
            member.cross();
            if waits.len() < waits.capacity() {
                waits.push(now().nanos_since(arrived) as f64);
            }
        } else {
            member.cross();
        }
        if crossing >= last.load(Relaxed) {
            let nanos = begun.elapsed().as_nanos() as f64;
            return (crossing + 1, nanos, waits);
        }
    }
    unreachable!("crossings are counted without end")
}
