//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod blocking;
mod bounded;
mod channel;
mod constructors;
mod copied;
mod further;
mod heaps;
mod listed;
mod others;
mod rank_error;
mod stacks;
#[path = "../common/values.rs"]
mod values;
