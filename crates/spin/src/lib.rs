#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(feature = "alloc")]
extern crate alloc;

mod bomb;
#[macro_use]
mod raw;
mod table;

pub mod backoff;
pub mod contention;

mod anderson;
#[cfg(feature = "alloc")]
mod clh;
mod mcs;
#[cfg(feature = "std")]
mod preemption_safe;
#[cfg(feature = "std")]
mod recovering;
mod test_and_set;
mod ticket;
#[cfg(feature = "std")]
mod time_published_mcs;

pub use lock_api;
pub use stanchion_machine::wait::{Patient, Spin, WaitPolicy};

pub use anderson::{
    Anderson, AndersonMutex, AndersonMutexGuard, PolicyAndersonMutex, PolicyAndersonMutexGuard,
    Turn,
};
pub use backoff::Backoff;
#[cfg(feature = "alloc")]
pub use clh::{Clh, ClhMutex, ClhMutexGuard, Held, PolicyClhMutex, PolicyClhMutexGuard};
pub use mcs::{Mcs, McsMutex, McsMutexGuard, PolicyMcsMutex, PolicyMcsMutexGuard};
#[cfg(feature = "std")]
pub use preemption_safe::{
    PolicyPreemptionSafeMutex, PolicyPreemptionSafeMutexGuard, PreemptionSafe, PreemptionSafeMutex,
    PreemptionSafeMutexGuard,
};
#[cfg(feature = "std")]
pub use recovering::{
    PolicyRecoveringMutex, PolicyRecoveringMutexGuard, Recovering, RecoveringMutex,
    RecoveringMutexGuard,
};
pub use test_and_set::{
    PolicyTestAndSetMutex, PolicyTestAndSetMutexGuard, TestAndSet, TestAndSetMutex,
    TestAndSetMutexGuard,
};
pub use ticket::{
    PolicyTicketMutex, PolicyTicketMutexGuard, Ticket, TicketMutex, TicketMutexGuard,
};
#[cfg(feature = "std")]
pub use time_published_mcs::{
    PolicyTimePublishedMcsMutex, PolicyTimePublishedMcsMutexGuard, TimePublishedMcs,
    TimePublishedMcsMutex, TimePublishedMcsMutexGuard,
};
