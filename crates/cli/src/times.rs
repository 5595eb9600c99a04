//! How long things take, as the help says it; `cargo xtask times` rewrites this file.

/// What the study runs for with `--quick`.
macro_rules! study_run {
    () => {
        /* time: study-run */
        "5 minutes"
    };
}
/// What a study of simulated machines runs for with `--quick`.
macro_rules! simulate_quick {
    () => {
        /* time: simulate-quick */
        "3 minutes"
    };
}

pub(crate) use {simulate_quick, study_run};
