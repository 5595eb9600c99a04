//! The `stanchion` command.
fn main() {}
