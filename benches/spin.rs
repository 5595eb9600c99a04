//! Spin locks.
fn main() {}
