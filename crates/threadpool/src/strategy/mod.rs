//! The strategies: ways of managing ready work behind the trait [`Strategy`].
//!
//! The paper's operations on a thread (Table 2.1) are three here. *Create* takes a free control
//! block, lets the caller fill it and makes it ready. *Start* finds a ready one. *Finish* gives a
//! block back. A worker that finishes looks for another task at once, and a strategy with one lock
//! does both under it. So [`next`](Strategy::next) is the two in one.
//!
//! | strategy | ready tasks | idle workers |
//! | --- | --- | --- |
//! | `SingleLock` | one queue | look at the queue; one lock for everything |
//! | `MultipleLocks` | one queue | look at the queue; a lock for each part |
//! | `LocalFreeList` | one queue, locked | look at the queue |
//! | `IdleQueue` | one queue, locked | queue up with a block; creators look for them |
//! | `LocalReadyQueue` | a queue per worker, each locked | scan all queues |
//! | [`WorkStealing`] | a queue per worker, without a lock for its owner | take half of another's |
//! | `CentralElseLocal` | one queue; one per worker if its lock is busy | scan all queues |
//! | `ProbeIdleElseCentral` | one queue, locked | offer a block; creators probe for them |
//!
//! The free blocks of the first two are in one list. The others have a list per worker without a
//! lock.
//!
//! | folder or file | what it holds |
//! | --- | --- |
//! | `table.rs` | the entry of each strategy, for all that tests or measures them |
//! | `interface.rs`, `order.rs` | the trait, its parameters, and the order of a queue |
//! | `paper/` | the strategies of 1989, and the two hybrids that the paper names |
//! | `work_stealing/` | the default |
//! | `blocks/` | control blocks: slabs, free lists, and what strategies share of them |
//!
//! To add a strategy, write a type that implements [`Strategy`], here or in `paper/`. It must be in
//! this crate: no other crate can make a [`Task`](crate::Task). `blocks/resources.rs` has its
//! blocks and most of its methods (`keeps_resources!`). `CONTRIBUTING.md`, "Adding a strategy",
//! says what else there is to do.
//!
//! Source: Anderson, Lazowska and Levy 1989, sections 2 and 3.

pub(crate) mod blocks;
mod interface;
mod order;
mod paper;
mod table;
pub(crate) mod work_stealing;

pub use interface::{Lock, Plan, Strategy, WakeTarget, WorkerSlot};
pub use order::{Fifo, Lifo, Order};
pub use paper::{
    CentralElseLocal, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, OwnQueue,
    Placement, ProbeIdleElseCentral, Random, SingleLock, TwoChoices,
};
pub use work_stealing::WorkStealing;
