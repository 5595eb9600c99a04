//! The register-level simulator.
fn main() {}
