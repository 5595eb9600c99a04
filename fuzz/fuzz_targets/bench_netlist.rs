//! The netlist parser.
fn main() {}
