//! The scheduler's thread. It sleeps until a member's slice is over and signals the member. If the
//! member still runs when its grace is over, the thread signals it again.

use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::vec::Vec;

use super::member::{self, Member, Record};
use super::signal;
use crate::{Refused, Times};
use stanchion_machine::clock;

/// A running scheduler; dropping it releases its members and ends its thread.
#[derive(Debug)]
pub(crate) struct Scheduler {
    /// The quantum, the time of the others between two slices, and the grace.
    times: Times,
    /// The state that its thread shares with those that join.
    shared: Arc<Shared>,
    /// None at level 1.
    thread: Option<(JoinHandle<()>, i32)>,
    /// The process of that thread.
    process: i32,
}

#[derive(Debug, Default)]
struct Shared {
    /// The members, under a lock.
    members: Mutex<Members>,
    /// Notified when a member joins, and when all is over.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Members {
    /// The records of the present members.
    there: Vec<Arc<Record>>,
    /// The number of members that have ever joined.
    joined: u64,
    /// True once the scheduler was dropped.
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheduler {
    pub(crate) fn start(times: Times, wanted: Option<i32>) -> Result<Self, Refused> {
        let shared = Arc::<Shared>::default();
        let thread = if times.others == 0 {
            None
        } else {
            let signal = signal::claim(wanted)?;
            let theirs = Arc::clone(&shared);
            let thread = std::thread::Builder::new()
                .name("multiprogramming".into())
                .spawn(move || run(&theirs, signal))
                .map_err(|error| Refused::Other {
                    call: "starting a thread",
                    errno: error.raw_os_error().unwrap_or(0),
                })?;
            Some((thread, signal))
        };
        Ok(Self { times, shared, thread, process: process() })
    }

    /// Returns whether this process was forked since. If so, there is no thread here, and a lock
    /// that a thread of the parent held is never released here.
    fn is_left_behind(&self) -> bool {
        self.process != process()
    }

    pub(crate) fn join(&self) -> Result<Member, Refused> {
        if self.is_left_behind() {
            return Err(Refused::Forked);
        }
        if let Some((_, signal)) = &self.thread {
            signal::unblock(*signal);
        }
        let mut members = self.shared.lock();
        let (member, record) = member::join(self.times, first_slice(self.times, members.joined))?;
        members.joined += 1;
        if self.thread.is_some() {
            members.there.push(record);
            self.shared.changed.notify_one();
        }
        Ok(member)
    }
}

fn process() -> i32 {
    // SAFETY: cannot fail.
    unsafe { libc::getpid() }
}

/// Returns the length of the first slice of the member of that number. It is a part of a quantum,
/// and members with consecutive numbers get quite different parts.
fn first_slice(times: Times, number: u64) -> u64 {
    /// The golden section, in 2^64ths: multiples of it fall into the gaps of those before.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let part = number.wrapping_add(1).wrapping_mul(GOLDEN);
    ((u128::from(part) * u128::from(times.quantum)) >> 64) as u64
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if self.is_left_behind() {
            // Neither joined nor detached: its thread is not in this process.
            core::mem::forget(self.thread.take());
            return;
        }
        let mut members = self.shared.lock();
        members.over = true;
        for record in members.there.drain(..) {
            record.release();
        }
        drop(members);
        self.shared.changed.notify_one();
        if let Some((thread, _)) = self.thread.take() {
            // It does not panic. If it did, there would still be no thread to stop.
            let _ = thread.join();
        }
    }
}

/// The life of the scheduler's thread.
fn run(shared: &Shared, signal: i32) {
    let mut members = shared.lock();
    while !members.over {
        // Relaxed, here and below: a thread that has left, or a slice that has just begun, is seen
        // at the next look.
        use core::sync::atomic::Ordering::Relaxed;
        members.there.retain(|record| !record.gone.load(Relaxed));
        let now = clock::monotonic();
        let next = members.there.iter().map(|record| due(record, now, signal)).min();
        members = match next {
            None => shared.changed.wait(members).unwrap_or_else(PoisonError::into_inner),
            Some(next) => {
                let rest = Duration::from_nanos(next.saturating_sub(now));
                let woken = shared.changed.wait_timeout(members, rest);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

/// Signals a member if its slice is over. Returns when to look at it again.
fn due(record: &Record, now: u64, signal: i32) -> u64 {
    use core::sync::atomic::Ordering::Relaxed;
    let end = record.slice_end.load(Relaxed);
    if now < end {
        return end;
    }
    // One signal at a time: a thread that does not come to its handler would collect them. A signal
    // that could not be sent is sent at the next look.
    if !record.signalled.swap(true, Relaxed) && !signal::send(signal, record.tid) {
        record.signalled.store(false, Relaxed);
    }
    // The handler puts the end of the slice off; this is in case that it does not come to that.
    now + record.times.quantum
}
