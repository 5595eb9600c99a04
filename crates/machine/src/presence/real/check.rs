//! Checks whether switch records can be had here, and mean what they should.
//!
//! The bit that tells preemption from blocking was wrong in kernels on the way to 6.12, for threads
//! that the kernel removed late from the run queue. So the first use in a process looks. A thread
//! sleeps, and must read as having blocked. It yields to another on the same processor, and must
//! read as having been preempted.

use super::refusals::unless_refused;
use crate::presence::Presence;
use crate::presence::Refused;
use crate::presence::switches::{Ring, Switch};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;
use std::vec::Vec;

/// True once the check has succeeded in this process or in one that it is forked from.
static PASSED: AtomicBool = AtomicBool::new(false);
/// The number of callers that want no records.
static DECLINED: AtomicUsize = AtomicUsize::new(0);

/// Counts one more caller that wants no records, or one less.
pub(crate) fn decline(more: bool) {
    // Relaxed: another thread that asks has been told by other means, or does not mind.
    if more {
        DECLINED.fetch_add(1, Ordering::Relaxed);
    } else {
        DECLINED.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn status() -> Result<(), Refused> {
    // Relaxed: as above.
    if DECLINED.load(Ordering::Relaxed) > 0 {
        return Err(Refused::Declined);
    }
    // Relaxed: nothing else was written that it stands for.
    if PASSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // Several threads may look at once; each comes to the same answer.
    unless_refused(look)?;
    PASSED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Makes a ring in a thread of its own and compares what it says with what that thread does.
fn look() -> Result<(), Refused> {
    let stop = AtomicBool::new(false);
    let processor = crate::topology::processors()[0];
    thread::scope(|scope| {
        // Relaxed: the flag is all there is to see, and the threads are joined.
        let peer = || {
            let pinned = crate::topology::pin(processor);
            while pinned.is_ok() && !stop.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let watched = || {
            let ring = Ring::of_this_thread()?;
            must(ring.presence() == Presence::Running, "a running thread reads as away")?;
            sleep_reads_as_blocked(&ring)?;
            // Alone on its processor, a thread that yields is not switched out.
            if crate::topology::pin(processor).map(core::mem::forget).is_ok() {
                yield_reads_as_preempted(&ring)?;
            }
            Ok(())
        };
        let watched = thread::Builder::new().spawn_scoped(scope, watched).map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(0);
            Refused::Other { call: "starting a thread for the check", errno }
        })?;
        // Without a peer the yield goes untested, which is no reason to refuse.
        let peer = thread::Builder::new().spawn_scoped(scope, peer);
        let found = watched.join();
        stop.store(true, Ordering::Relaxed);
        drop(peer);
        found.unwrap_or(Err(Refused::Untrustworthy { what: "the check itself failed" }))
    })
}

fn must(holds: bool, what: &'static str) -> Result<(), Refused> {
    if holds { Ok(()) } else { Err(Refused::Untrustworthy { what }) }
}

/// Returns the switches that `act` caused to the calling thread, the owner of the ring.
fn caused(ring: &Ring, act: impl FnOnce()) -> Result<Vec<Switch>, Refused> {
    let before = ring.count();
    act();
    paired((before..ring.count()).map(|number| ring.switch(number)).collect())
}

/// Checks the records of a thread that runs before and after: pairs of out and in, all legible.
fn paired(records: Vec<Option<Switch>>) -> Result<Vec<Switch>, Refused> {
    let pairs = records
        .chunks(2)
        .all(|pair| matches!(pair, [Some(Switch::Preempted | Switch::Blocked), Some(Switch::In)]));
    must(pairs, "records are not one out, one in, of 16 bytes each")?;
    Ok(records.into_iter().flatten().collect())
}

fn sleep_reads_as_blocked(ring: &Ring) -> Result<(), Refused> {
    // A sleep may be over before the thread has left its processor: longer ones then.
    for micros in [20, 50, 200, 1_000, 5_000] {
        let switches = caused(ring, || thread::sleep(Duration::from_micros(micros)))?;
        if switches.contains(&Switch::Blocked) {
            return Ok(());
        }
    }
    must(false, "a sleep does not read as blocked")
}

fn yield_reads_as_preempted(ring: &Ring) -> Result<(), Refused> {
    // More than one go, because a stop signal in between would read as a block, and rightly.
    for _ in 0..3 {
        let before = ring.count();
        let switches = caused(ring, || {
            for _ in 0..2_000 {
                thread::yield_now();
                if ring.count() != before {
                    break;
                }
            }
        })?;
        if !switches.contains(&Switch::Blocked) {
            return Ok(());
        }
    }
    must(false, "a yield reads as blocked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_do_not_come_in_pairs_are_not_believed() {
        use Switch::{Blocked, In, Preempted};
        assert_eq!(paired(std::vec![]), Ok(std::vec![]));
        let good = [Some(Blocked), Some(In), Some(Preempted), Some(In)];
        assert_eq!(paired(good.into()), Ok(std::vec![Blocked, In, Preempted, In]));
        for bad in
            [&[Some(In)][..], &[Some(Blocked)], &[Some(In), Some(Blocked)], &[Some(Blocked), None]]
        {
            assert!(matches!(paired(bad.into()), Err(Refused::Untrustworthy { .. })), "{bad:?}");
        }
    }

    #[test]
    fn the_answer_stays_the_same() {
        assert_eq!(status(), status());
    }
}
