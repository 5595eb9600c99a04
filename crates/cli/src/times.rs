//! The times that the help states. `cargo xtask times` rewrites this file.

/// Expands to the time of a study with `--quick`.
#[rustfmt::skip]
macro_rules! study_run {
    () => { /* time: study-run */ "7 minutes" };
}
/// Expands to the time of a study of simulated machines with `--quick`.
#[rustfmt::skip]
macro_rules! simulate_quick {
    () => { /* time: simulate-quick */ "3 minutes" };
}

pub(crate) use {simulate_quick, study_run};
