//! The processors of a runtime, as it sees them: slots, the workers that own them, and the workers
//! that have none.
//!
//! A *slot* is a virtual processor: the right to run threads. A runtime has one for each processor,
//! and some more for workers that block often and briefly. A *worker* is a kernel thread that runs
//! user-level threads while it owns a slot.
//!
//! ```text
//! slot      0      1      2      3   │ 4  5  …        `slot`, `overcommit` beyond the bar
//! owner   worker worker worker   –   │ –  worker      `ownership`, `worker_record`
//!           0      7      2  closed  │    3           `limit` closes and opens slots
//!
//! workers without a slot: 1, 4, 5, 6                  `idle_workers`
//! workers that sleep on their slot: 2                 `parking`
//! ```
//!
//! `arbiter` divides the machine's processors among runtimes. This room imports `detection`,
//! `queues`, `stats` and `thread`.

pub(crate) mod arbiter;
pub(crate) mod idle_workers;
pub(crate) mod limit;
pub(crate) mod overcommit;
pub(crate) mod ownership;
pub(crate) mod parking;
pub(crate) mod slot;
pub(crate) mod worker_record;

use core::iter::Chain;
use core::ops::Range;

use arbiter::Arbiter;
use idle_workers::IdleWorkers;
use limit::ProcessorLimit;
use overcommit::{OpenSlots, Overcommit};
use parking::ParkedSlots;
use slot::Slot;

/// The part of a runtime's state with its slots and the workers that have none.
pub(crate) struct Processors {
    /// The slots: first those that are always there.
    slots: Box<[Slot]>,
    /// The slots with a worker that sleeps.
    pub(crate) parked: ParkedSlots,
    /// The workers without a slot, and the slots without a worker.
    pub(crate) idle_workers: IdleWorkers,
    /// The slots beyond the processors.
    pub(crate) overcommit: Overcommit,
    /// The number of slots that the runtime uses.
    pub(crate) limit: ProcessorLimit,
    /// The machine's processor for each slot, if workers are pinned.
    pinned: Option<Box<[usize]>>,
}

impl Processors {
    /// Returns the state of a runtime with so many slots that are always there, and so many that
    /// are not.
    pub(crate) fn new(
        slots: usize,
        overcommit: usize,
        pinned: Option<Box<[usize]>>,
        arbiter: Option<Arbiter>,
    ) -> Self {
        Self {
            slots: (0..slots + overcommit).map(Slot::new).collect(),
            parked: ParkedSlots::new(slots),
            idle_workers: IdleWorkers::new(),
            overcommit: Overcommit::new(slots, overcommit),
            limit: ProcessorLimit::new(slots, arbiter),
            pinned,
        }
    }

    pub(crate) fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    /// Returns the number of slots that are always there: one for each processor.
    pub(crate) fn count(&self) -> usize {
        self.limit.slots()
    }

    /// Returns the slots that are in use, as far as is known.
    pub(crate) fn in_use(&self) -> Chain<Range<usize>, OpenSlots> {
        (0..self.limit.allowed()).chain(self.overcommit.open_slots())
    }

    /// Returns the machine's processor for this slot, if workers are pinned.
    pub(crate) fn pinned_to(&self, slot: usize) -> Option<usize> {
        let pinned = self.pinned.as_ref()?;
        Some(pinned[slot % pinned.len()])
    }

    pub(crate) fn are_pinned(&self) -> bool {
        self.pinned.is_some()
    }
}
