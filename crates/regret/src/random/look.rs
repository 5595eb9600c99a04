//! A brief look at families, for a report without whole grids of them: as many cells of the same
//! distributions as fit into a given time. Many cells tell more than many races in few cells,
//! because cells differ more than races do.
//!
//! Half of the time is for all families alike. Each further cell is one of the family with the
//! answer that is least sure. The rule looks at how sure an answer is, and not at what it is.

use std::time::{Duration, Instant};

use stanchion_study::context::{Context, Stop};
use stanchion_study::grids::{Grid, choose};

use super::plan::Plan;
use super::trial::Look;
use super::{FAMILIES, show};
use crate::options::Options;

/// Asks for a brief look.
#[derive(Clone, Debug)]
pub struct FirstLook {
    /// The longest time of all.
    pub time: Duration,
    /// The names of the families.
    pub families: Vec<&'static str>,
}

/// The most cells of a family.
const MOST: u32 = 60;

/// The time of a step of the progress: about that of a race.
const STEP: Duration = Duration::from_millis(50);

impl FirstLook {
    /// Returns the number of steps that the look counts.
    pub(crate) fn steps(&self) -> usize {
        (self.time.as_millis() / STEP.as_millis()) as usize
    }
}

/// The progress of a look, which follows the time: how many cells fit into it is not known before.
struct Steps<'a> {
    /// The context of the study.
    context: &'a Context,
    /// The beginning of the look.
    began: Instant,
    /// The number of steps of the whole look.
    all: usize,
    /// The number of steps that were counted.
    counted: usize,
}

impl Steps<'_> {
    /// Counts the steps of the time that has passed.
    fn catch_up(&mut self) -> Result<(), Stop> {
        let passed = (self.began.elapsed().as_millis() / STEP.as_millis()) as usize;
        while self.counted < passed.min(self.all) {
            self.counted += 1;
            self.context.step()?;
        }
        self.context.go_on()
    }
}

/// Looks at the families. The caller has planned the steps.
pub(crate) fn run(context: &Context, look: &FirstLook) -> Result<Vec<Grid>, Stop> {
    let began = Instant::now();
    let mut steps = Steps { context, began, all: look.steps(), counted: 0 };
    let named = FAMILIES.iter().filter(|family| look.families.contains(&family.name));
    let plans: Result<Vec<_>, _> =
        named.map(|family| plan(context, family.name)).filter_map(Result::transpose).collect();
    let plans = plans?;
    let even = look.time / 2 / u32::try_from(plans.len()).unwrap_or(u32::MAX).max(1);
    let mut looks: Vec<(Look<'_>, Grid)> = Vec::new();
    for plan in &plans {
        let (began, mut look) = (Instant::now(), Look::new(context, plan));
        look.visit_next()?;
        steps.catch_up()?;
        while look.has_next_within(even.saturating_sub(began.elapsed())) {
            look.visit_next()?;
            steps.catch_up()?;
        }
        let grid = show::grid(plan, look.trial(), true);
        looks.push((look, grid));
    }
    loop {
        let left = look.time.saturating_sub(began.elapsed());
        let open = plans.iter().zip(&mut looks).filter(|(_, (look, _))| look.has_next_within(left));
        let least_sure = open.max_by(|(_, (_, a)), (_, (_, b))| doubt(a).total_cmp(&doubt(b)));
        let Some((plan, (look, grid))) = least_sure else { break };
        look.visit_next()?;
        *grid = show::grid(plan, look.trial(), true);
        steps.catch_up()?;
    }
    Ok(looks.into_iter().map(|(_, grid)| grid).collect())
}

fn plan(context: &Context, family: &str) -> Result<Option<Plan>, Stop> {
    let options = Options {
        quick: true,
        random: Some(MOST),
        family: Some(family.to_owned()),
        rounds: Some(1),
        // As short as a window may be.
        window_ms: Some(40),
        seed: context.seed,
        ..Options::default()
    };
    Plan::new(&options).map_err(|refused| Stop::Failed(refused.to_string()))
}

/// The least cells of a family, if there is time for them.
const LEAST: usize = 8;

/// Returns by how many percent the answer of a grid may be wrong. That of fewer than [`LEAST`]
/// cells is the less sure the fewer they are, however much these agree.
fn doubt(grid: &Grid) -> f64 {
    match grid.cells.len() {
        cells if cells < LEAST => f64::MAX / cells as f64,
        // If none can be chosen, one cell more changes nothing.
        _ => choose(grid).map_or(0.0, |choice| choice.within_percent),
    }
}

#[cfg(test)]
mod tests {
    use stanchion_study::interrupt::Interrupt;

    use super::*;

    /// Races of pools are processes of their own, which run the command, and this is a test.
    fn all_but_pools() -> Vec<&'static str> {
        FAMILIES.iter().map(|family| family.name).filter(|&name| name != "pools").collect()
    }

    #[test]
    fn the_progress_follows_the_time_and_ends_with_the_look() {
        let context = Context::new(true, 1989, Interrupt::default());
        let ago = |millis| Instant::now().checked_sub(Duration::from_millis(millis)).unwrap();
        let mut steps = Steps { context: &context, began: ago(120), all: 10, counted: 0 };
        steps.catch_up().unwrap();
        assert!((2..10).contains(&steps.counted), "{}", steps.counted);
        steps.began = ago(9_000);
        steps.catch_up().unwrap();
        assert_eq!(steps.counted, 10);
        let look = FirstLook { time: Duration::from_secs(90), families: Vec::new() };
        assert_eq!(look.steps(), 1_800);
    }

    #[test]
    fn a_look_has_a_cell_of_each_family() {
        let context = Context::new(true, 1989, Interrupt::default());
        let look = FirstLook { time: Duration::from_millis(10), families: all_but_pools() };
        let grids = run(&context, &look).unwrap();
        let names: Vec<_> = grids.iter().map(|grid| grid.family.as_str()).collect();
        assert_eq!(names, look.families);
        for grid in &grids {
            // There is time for the first cell only.
            assert!(grid.brief && grid.cells.len() == 1, "{}", grid.family);
            assert_eq!(grid.contestants.len(), grid.peers.len());
            let known = grid.cells[0].figures.iter().flatten().count();
            assert!(known == grid.contestants.len(), "{}: {known}", grid.family);
        }
    }
}
