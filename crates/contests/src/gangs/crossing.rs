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
pub(crate) struct Circumstances {
    /// The number of members.
    pub(crate) threads: usize,
    /// The computation between two crossings, in ns.
    pub(crate) grain: u64,
    /// The number of threads that compute all the time.
    pub(crate) hogs: usize,
    /// True if each member is pinned to a processor of its own.
    pub(crate) pinned: bool,
}

/// A member's way to cross.
pub(crate) trait Member {
    fn cross(&mut self);
}

/// One of this many waits is timed.
const TIMED: u64 = 8;

/// Runs `members` for about `lasting`. Returns, in nanoseconds, the time and the processor time of
/// all members for each crossing, and the 99th percentile of one member's waits.
pub(crate) fn run<M: Member + Send>(
    members: Vec<M>,
    cell: Circumstances,
    lasting: Duration,
) -> Figures {
    let processors = topology::processors();
    let work = Work::of(cell.grain);
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
        let figures: Vec<_> =
            handles.into_iter().map(|handle| handle.join().expect("a member ended")).collect();
        over.store(true, Relaxed);
        let (crossings, nanos, p99) = figures[0];
        let crossings = crossings as f64;
        vec![nanos / crossings, cpu.load(Relaxed) as f64 / crossings, p99]
    })
}

/// Takes part until member 0, which leads, has measured for long enough. Returns the number of
/// crossings, their time, and the 99th percentile of the waits, which is 0 for all members but the
/// leader.
pub(crate) fn take_part(
    member: &mut impl Member,
    leads: bool,
    work: Work,
    last: &AtomicU64,
    lasting: Duration,
) -> (u64, f64, f64) {
    if leads {
        return lead(member, work, last, lasting);
    }
    follow(member, work, last);
    (0, 0.0, 0.0)
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
) -> (u64, f64, f64) {
    let mut waits = Vec::with_capacity(1 << 17);
    let begun = Instant::now();
    for crossing in 0.. {
        work.compute();
        if crossing % TIMED == 0 || work.loops > 1_000 {
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
            return (crossing + 1, nanos, quantile(&mut waits, 0.99));
        }
    }
    unreachable!("crossings are counted without end")
}
