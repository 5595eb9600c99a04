//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod advise;
mod bad_input;
mod command;
mod common;
mod events;
mod hostile;
mod klmo91;
mod page;
mod patch;
mod projections;
mod random;
mod record;
mod report;
mod resume;
mod share;
mod stalls;
mod watch;
