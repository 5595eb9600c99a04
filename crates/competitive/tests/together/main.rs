//! Tests that may run beside each other, in one program: linking each by itself takes longer.

#[path = "../common/mod.rs"]
mod common;
mod condvar;
mod constructors;
mod event_count;
#[cfg(feature = "wait_files")]
mod event_files;
mod fair_mutex;
mod features;
mod lazy_lock;
mod mutex;
mod mutex_edges;
mod names;
mod once;
mod payload;
mod policies;
mod reentrant_mutex;
mod rw_lock;
mod semaphore;
mod semaphore_permits;
mod thread_end;
#[cfg(feature = "wait_files")]
mod wait_files;
