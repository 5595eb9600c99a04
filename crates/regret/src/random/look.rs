//! A brief look at all families, for a report without a whole grid: as many cells of the same
//! distributions as fit into a given time. Many cells tell more than many races in few cells,
//! because cells differ more than races do.

use std::time::Duration;

use stanchion_study::context::{Context, Stop};
use stanchion_study::grids::Grid;

use super::plan::Plan;
use super::{FAMILIES, Family, show, trial};
use crate::options::Options;

/// Asks for a brief look, and says how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct FirstLook(pub Duration);

/// The most cells of a family.
const MOST: u32 = 60;

/// Looks at all families, each for an equal part of the time.
pub(crate) fn run(context: &Context, look: FirstLook) -> Result<Vec<Grid>, Stop> {
    looks(context, look, &FAMILIES.iter().collect::<Vec<_>>())
}

fn looks(context: &Context, look: FirstLook, families: &[&Family]) -> Result<Vec<Grid>, Stop> {
    let time = look.0 / u32::try_from(families.len()).unwrap_or(u32::MAX).max(1);
    let mut grids = Vec::new();
    context.plan(families.len());
    for family in families {
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

#[cfg(test)]
mod tests {
    use stanchion_study::grids::FAMILIES as NAMED;
    use stanchion_study::interrupt::Interrupt;

    use super::*;

    #[test]
    fn a_look_has_a_cell_of_each_family() {
        let context = Context::new(true, 1989, Interrupt::default());
        // Races of pools are processes of their own, which run the command, and this is a test.
        let some: Vec<&Family> = FAMILIES.iter().filter(|family| family.name != "pools").collect();
        let grids = looks(&context, FirstLook(Duration::from_millis(10)), &some).unwrap();
        assert_eq!(grids.len(), some.len());
        for grid in &grids {
            assert!(NAMED.iter().any(|(family, _)| *family == grid.family), "{}", grid.family);
            // There is time for the first cell only.
            assert!(grid.brief && grid.cells.len() == 1, "{}", grid.family);
            assert_eq!(grid.contestants.len(), grid.peers.len());
            let known = grid.cells[0].figures.iter().flatten().count();
            assert!(known == grid.contestants.len(), "{}: {known}", grid.family);
        }
    }
}
