//! The state by which a runtime detects workers that the kernel has blocked or preempted. The
//! decisions are in `upcalls`.
//!
//! | file | what it has |
//! | --- | --- |
//! | `observed` | what was last observed of a worker, so that each upcall is counted once |
//! | `watch_state` | the word that says which thread would notice a blocked worker |
//! | `monitor` | the place where the monitor sleeps, and the workers that it is woken for |
//! | `handoff_delay` | the time for which a worker may be blocked before its slot is taken |
//! | `lost_time` | processor time that was lost to blocked workers |
//!
//! This room imports `stats` and `thread`.

pub(crate) mod handoff_delay;
pub(crate) mod lost_time;
pub(crate) mod monitor;
pub(crate) mod observed;
pub(crate) mod watch_state;

use crate::stats::trace::Tracer;
use crate::stats::upcalls::{Upcall, UpcallCounters};

use handoff_delay::HandoffDelay;
use lost_time::{LostTime, SlotTimes};
use monitor::Monitor;

/// The part of a runtime's state that detects stuck workers, and records what it has detected.
pub(crate) struct Detection {
    /// `true` if workers are watched: `RuntimeBuilder::activations`.
    pub(crate) is_on: bool,
    /// The thread that looks for blocked workers when no worker would.
    pub(crate) monitor: Monitor,
    /// The time for which a worker may be blocked before its slot is taken. Learned by workers that
    /// come back.
    pub(crate) handoff_delay: HandoffDelay,
    /// Raised by any thread that finds an upcall.
    pub(crate) counters: UpcallCounters,
    /// The lost processor time of all slots. Added to by the thread that ends a loss.
    pub(crate) lost_time: LostTime,
    /// The times of each slot.
    slot_times: Box<[SlotTimes]>,
    /// The trace, if the user has asked for one.
    tracer: Option<Tracer>,
}

impl Detection {
    pub(crate) fn new(is_on: bool, slots: usize, tracer: Option<Tracer>) -> Self {
        Self {
            is_on,
            monitor: Monitor::new(is_on),
            handoff_delay: HandoffDelay::new(),
            counters: UpcallCounters::default(),
            lost_time: LostTime::default(),
            slot_times: (0..slots).map(|_| SlotTimes::new()).collect(),
            tracer,
        }
    }

    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }

    pub(crate) fn slot_times(&self, slot: usize) -> &SlotTimes {
        &self.slot_times[slot]
    }

    /// Records an upcall for the worker on this slot, so many nanoseconds after its cause, if that
    /// is known.
    pub(crate) fn record(&self, upcall: Upcall, slot: usize, latency: Option<u64>) {
        // The trace comes first: its clock says when.
        if let Some(tracer) = &self.tracer {
            tracer.upcall(upcall, slot, latency);
        }
        self.counters.count(upcall, latency);
    }
}
