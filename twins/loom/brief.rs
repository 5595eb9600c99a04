//! Models of which every run of CI explores a part, and `cargo xtask loom --whole` all.
//!
//! Why not always all: they would take longer than all others together can be allowed to. Each has a bound in either case, and says both: what two
//! threads do once is explored without bound in every run. Every ordering that WEAKEN.md says one of them needs, the brief one misses too.
//! `twins/loom/explored.txt` has the numbers of the brief runs.

use machine::Model;

/// The environment variable that asks for all, set by `cargo xtask loom --whole`.
const MODELS: &str = "STANCHION_MODELS";

/// `model` with at most `brief` preemptions, or with at most `whole` if all is asked for.
pub(crate) fn bounded(model: Model, brief: usize, whole: usize) -> Model {
    let all = std::env::var_os(MODELS).is_some_and(|asked| asked == "whole");
    model.preemptions(if all { whole } else { brief })
}
