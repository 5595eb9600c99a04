//! Which mutex is never far from the best? Every contestant in every cell of a grid, and how much
//! each loses to the best lock of the cell.
//!
//! ```text
//! options ──▶ Plan: cells (grid), contestants
//!                     │ trial
//!                     ▼
//!             one race each, interleaved (waits, work, hogs, others)
//!                     │
//!                     ▼
//!                  medians ──standing──▶ regrets ──▶ bars, show
//! ```
//!
//! [`random`] draws the cells of a grid, and judges our defaults against their peers only.
//!
//! Why regret and not a mean of throughputs: the cells with the largest figures decide a mean. A
//! lock that is best in half of the cells may be thirty times slower in the cell that resembles a
//! user's program. The worst regret is the most that choosing this lock without knowing the program
//! can cost.
//!
//! Rule of the verdict: see `bars`. The rules are meant for `--full`. A smaller run is judged by
//! the same rules over the cells that it took.

mod bars;
mod contestants;
mod grid;
pub mod hogs;
pub mod options;
mod race;
pub mod random;
mod show;
mod standing;
mod trial;
mod turns;
mod waits;
mod work;

use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::outcome::Outcome;

/// The experiment `regret`; it is given a [`Plan`](options::Plan), or one of a
/// [random grid](random::Plan).
pub const EXPERIMENT: Experiment = Experiment {
    id: "regret",
    paper: Paper::Klmo91,
    title: "Which mutex is never far from the best",
    claim: "Over thread counts, section lengths, work outside and other programs on the machine, \
            the default mutex loses at most a fifth to the best lock of any cell and a twentieth \
            in the mean, less than any other mutex.",
    bodies: Bodies::real(
        run,
        "it asks which mutex to choose on this computer, beside other programs of it",
    ),
};

fn run(context: &Context) -> Result<Outcome, Stop> {
    if let Some(plan) = context.given::<random::Plan>() {
        return random::run(context, plan);
    }
    let Some(plan) = context.given::<options::Plan>() else {
        return Err(Stop::Failed("it was given no plan".to_owned()));
    };
    let look = context.given::<random::FirstLook>();
    context.plan(plan.races() + look.map_or(0, random::FirstLook::steps));
    let trial = trial::run(context, plan)?;
    let mut outcome = show::outcome(plan, &trial);
    if let Some(look) = look {
        match random::first_look(context, look) {
            Ok(grids) => outcome.grids = grids,
            // The named grid is whole.
            Err(Stop::Interrupted) => {}
            Err(Stop::Failed(why)) => outcome.notes.push(format!("No first look: {why}.")),
        }
    }
    Ok(outcome)
}
