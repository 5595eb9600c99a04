#![doc = include_str!("../README.md")]

mod lot;
mod mutex;
mod owner;

pub mod cost;
pub mod policy;
pub mod waits;

pub use lock_api;

pub use lot::after_fork;
pub use mutex::{
    MappedMutexGuard, MappedPolicyMutexGuard, Mutex, MutexGuard, PolicyMutex, PolicyMutexGuard,
    RawPolicyMutex,
};
pub use policy::Policy;
