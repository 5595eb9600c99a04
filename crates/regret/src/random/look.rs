//! A brief look at all families, for a report without a whole grid: as many cells of the same
//! distributions as fit into a given time. Many cells tell more than many races in few cells,
//! because cells differ more than races do.

use std::time::Duration;

use stanchion_study::context::{Context, Stop};
use stanchion_study::grids::Grid;

use super::plan::Plan;
use super::{FAMILIES, show, trial};
use crate::options::Options;

/// Asks for a brief look, and says how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct FirstLook(pub Duration);

/// The most cells of a family.
const MOST: u32 = 60;

/// Looks at all families, each for an equal part of the time.
pub(crate) fn run(context: &Context, look: FirstLook) -> Result<Vec<Grid>, Stop> {
    let time = look.0 / FAMILIES.len() as u32;
    let mut grids = Vec::new();
    context.plan(FAMILIES.len());
    for family in FAMILIES {
        let options = Options {
            quick: true,
            random: Some(MOST),
            family: Some(family.name.to_owned()),
            rounds: Some(1),
            // As short as a window may be.
            window_ms: Some(40),
            seed: context.seed,
            ..Options::default()
        };
        let plan = Plan::new(&options).map_err(|refused| Stop::Failed(refused.to_string()))?;
        let Some(plan) = plan else { continue };
        let trial = trial::look(context, &plan, time)?;
        grids.push(show::grid(&plan, &trial, true));
        context.step()?;
    }
    Ok(grids)
}
