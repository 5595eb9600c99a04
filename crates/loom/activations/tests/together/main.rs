//! The models of this twin, in one program: linking each file by itself takes longer.

mod channel_waits;
mod ends;
mod limit;
mod mailbox;
mod monitor;
mod observed;
mod parking;
mod reference_count;
mod slots;
mod stall_reports;
mod sync;
mod watch_state;
