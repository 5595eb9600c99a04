//! Circuits that come with the crate: three of the ISCAS'89 sequential benchmarks, unchanged.
//!
//! From the `hdl-benchmarks` collection of ISPRAS (Apache-2.0), which took them from the ISCAS'89
//! tape.

/// 4 inputs, 1 output, 3 flip-flops, 10 gates: small enough to be worked by hand.
pub const S27: &str = include_str!("../../data/s27.bench");

/// 3 inputs, 6 outputs, 14 flip-flops, 119 gates: a traffic light controller.
pub const S298: &str = include_str!("../../data/s298.bench");

/// 35 inputs, 49 outputs, 179 flip-flops, 2,779 gates: large enough to keep a few processors busy.
pub const S5378: &str = include_str!("../../data/s5378.bench");

/// Every circuit of this module by name.
pub const ALL: [(&str, &str); 3] = [("s27", S27), ("s298", S298), ("s5378", S5378)];
