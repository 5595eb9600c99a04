//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod against_all_orders;
mod broken;
#[path = "../common/mod.rs"]
mod common;
mod distinct;
mod literature;
