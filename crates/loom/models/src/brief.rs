//! Models with two bounds: a run of CI explores the brief one, and `cargo xtask loom --whole` the
//! whole one.
//!
//! Why not always the whole one: these models would take longer than all others together may take.
//! Each model states both bounds. If WEAKEN.md names such a model for an ordering, then the brief
//! one also fails without it.
//! `crates/loom/explored.txt` has the numbers of the brief runs.

use stanchion_machine::Model;

/// The environment variable that asks for the whole bound. `cargo xtask loom --whole` sets it.
const MODELS: &str = "STANCHION_MODELS";

/// Returns `model` with at most `brief` preemptions. If the environment asks for the whole, it has
/// at most `whole`, or no bound if `whole` is `None`.
#[must_use]
pub fn bounded(model: Model, brief: usize, whole: impl Into<Option<usize>>) -> Model {
    let all = std::env::var_os(MODELS).is_some_and(|asked| asked == "whole");
    match whole.into() {
        None if all => model,
        Some(whole) if all => model.preemptions(whole),
        _ => model.preemptions(brief),
    }
}
