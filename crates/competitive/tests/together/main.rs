//! Tests that may run beside each other, in one program: linking each by itself takes longer.

#[path = "../common/mod.rs"]
mod common;
mod condvar;
mod constructors;
mod event_count;
mod fair_mutex;
mod features;
mod lazy_lock;
mod names;
mod once;
mod policies;
mod reentrant_mutex;
mod rw_lock;
mod semaphore;
mod semaphore_permits;
