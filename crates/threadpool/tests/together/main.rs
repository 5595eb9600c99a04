//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod books;
#[path = "../common/mod.rs"]
mod common;
mod forks;
mod futures;
mod handlers;
mod hostile;
mod order;
mod paper;
mod pool;
mod strategies;
mod table;
mod waiting;
