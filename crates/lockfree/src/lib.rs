#![doc = include_str!("../README.md")]

#[macro_use]
mod macros;

pub mod barging;
pub mod blocking;
pub mod counter;
mod dropping;
mod guarded;
pub mod heap;
mod herlihy;
pub mod iter;
mod linked_cell;
pub mod memory;
pub mod progress;
pub mod queue;
pub mod stack;
mod table;

pub use lock_api;

pub use blocking::{
    Blocking, Receiver, RecvError, RecvTimeoutError, SendError, SendTimeoutError, Sender,
    SyncReceiver, SyncSender, TryRecvError, TrySendError, channel, channel_with_queue,
    sync_channel,
};
pub use counter::{
    CompareExchangeCounter, Counter, FetchAdd, FetchAddCounter, LinkedCounter, LockedCounter,
    ShardedCounter,
};
pub use heap::PriorityQueue;
pub use herlihy::Herlihy;
pub use linked_cell::{Link, LinkedCell};
pub use progress::Progress;
pub use queue::{ConcurrentQueue, Full};
pub use stack::ConcurrentStack;
