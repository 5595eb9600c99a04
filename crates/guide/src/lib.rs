//! The code blocks of the guide, as documentation tests: one module for each page.
//!
//! `cargo test --doc -p stanchion-guide` runs them without mdBook. A block that a reader builds
//! with `--cfg stanchion_loom` or `--cfg stanchion_simulated` is built here over the twin of the
//! crate: a hidden line gives the twin the crate's name. So each block runs on the machine that it
//! is about.
//!
//! A new page needs a line here, and one in `docs/guide/src/SUMMARY.md`.

/// Includes each page as the documentation of a module.
macro_rules! pages {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../../../docs/guide/src/", $file))]
            pub mod $name {}
        )*
    };
}

#[doc = include_str!("../../../README.md")]
pub mod readme {}

pages! {
    introduction: "introduction.md",
    choosing: "choosing.md",
    coming_from: "coming-from.md",
    checking: "checking.md",
    simulating: "simulating.md",
    recording: "recording.md",
    slow: "slow.md",
    papers: "papers.md",
    going_wrong: "going-wrong.md",
    testing: "testing.md",
    reference_activations: "reference/activations.md",
    reference_threadpool: "reference/threadpool.md",
    reference_gang: "reference/gang.md",
    reference_machine: "reference/machine.md",
    reference_simulator: "reference/simulator.md",
    reference_lockfree: "reference/lockfree.md",
    reference_competitive: "reference/competitive.md",
    reference_spin: "reference/spin.md",
    reference_cli: "reference/cli.md",
}
