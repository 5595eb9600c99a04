//! What a way of managing ready work must do; each file of this folder is one.
//!
//! The paper's operations on a thread (Table 2.1) are three here: *create*, which takes a free control block, lets the caller fill it and makes it
//! ready; *start*, which finds a ready one; *finish*, which gives a block back. A processor that finishes looks for another thread at once, and a
//! strategy with one lock does both under it: therefore [`next`](Strategy::next) is the two in one.
//!
//! | strategy | ready threads | free blocks | idle processors |
//! | --- | --- | --- | --- |
//! | `SingleLock` | one queue | one list | look at the queue; one lock for everything |
//! | `MultipleLocks` | one queue | one list | a lock for each |
//! | `LocalFreeList` | one queue, locked | a list per processor, no lock | look at the queue |
//! | `IdleQueue` | one queue, locked | as above | queue up with a block; work looks for them |
//! | `LocalReadyQueue` | a queue per processor, each with a lock | as above | scan all queues |
//! | [`WorkStealing`] | a queue per processor, whose owner needs no lock | as above | take half of what another has |
//! | `CentralElseLocal` | one queue, and one per processor for who finds its lock busy, each locked | as above | scan all queues |
//! | `ProbeIdleElseCentral` | one queue, locked | as above | hold a block, and are found by a creator that probes, or look at the queue |
//!
//! Source: Anderson, Lazowska and Levy 1989, sections 2 and 3.

pub(crate) mod blocks;
mod interface;
mod order;
mod paper;
pub(crate) mod work_stealing;

pub use interface::{Lock, Plan, Strategy, WakeTarget, WorkerSlot};
pub use order::{Fifo, Lifo, Order};
pub use paper::{
    CentralElseLocal, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, OwnQueue,
    Placement, ProbeIdleElseCentral, Random, SingleLock, TwoChoices,
};
pub use work_stealing::WorkStealing;
