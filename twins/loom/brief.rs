//! Models of which every run of CI explores a part, and `cargo xtask loom --whole` all.
//!
//! Why not always all: these models, fewer than twenty of five hundred, took a third of the processor time of all. Each says both bounds; every
//! ordering that WEAKEN.md says one of them needs, the brief one misses too. `twins/loom/explored.txt` has the numbers of the brief runs.

use machine::Model;

/// The environment variable that asks for all, set by `cargo xtask loom --whole`.
const MODELS: &str = "STANCHION_MODELS";

/// `model` with at most `brief` preemptions; if all is asked for, `whole`, where `None` is no bound.
pub(crate) fn bounded(model: Model, brief: usize, whole: Option<usize>) -> Model {
    if std::env::var_os(MODELS).is_none_or(|asked| asked != "whole") {
        return model.preemptions(brief);
    }
    match whole {
        Some(whole) => model.preemptions(whole),
        None => model,
    }
}
