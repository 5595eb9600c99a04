//! The models of this twin, in one program: linking each file by itself takes longer.

mod condvar;
mod current_waits;
mod event_count;
mod mutex;
mod once;
mod rw_lock;
mod semaphore;
mod wait_log;
mod waits;
