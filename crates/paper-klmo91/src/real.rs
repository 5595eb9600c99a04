//! The programs and the strategies on this computer.

use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::OptimalOnline;
use stanchion_competitive::waits::{self, Recorder};

use super::race::{Standings, hopeless, thresholds};
use super::recording::{LONGEST_SPIN, Recorded, switch};
use crate::waits::pool::Pool;
use stanchion_study::context::{Context, Stop};
use stanchion_study_programs::klmo91::entrants::entrants;
use stanchion_study_programs::klmo91::programs::Program;

/// Runs `program` once and returns its waits.
pub(crate) fn record(
    name: &'static str,
    program: &impl Program,
    context: &Context,
) -> Result<Recorded, Stop> {
    let switch = switch(context);
    let longest = (LONGEST_SPIN * switch as f64) as u64;
    waits::restart_with_cost(switch);
    let elapsed = program.run(&|name| {
        let policy = OptimalOnline::with_threshold(longest);
        RawPolicyMutex::with_policy(Recorder::with_policy(waits::intern(name), policy))
    })?;
    let mut recording = waits::snapshot();
    recording.cost_ns = switch;
    Ok(Recorded {
        name: name.to_owned(),
        beside: name,
        what: program.describe(),
        pool: Pool::of(vec![recording]),
        elapsed,
        processors: program.processors(),
        how: None,
        scale: 1.0,
    })
}

/// Runs `program` with every strategy, `rounds` times. `recorded` are waits of the same program.
pub(crate) fn run<A: Program>(
    context: &Context,
    program: &A,
    recorded: &Recorded,
    rounds: usize,
) -> Result<Standings, Stop> {
    let thresholds = thresholds(recorded)?;
    let entrants = entrants::<A>();
    let mut times = vec![Vec::new(); entrants.len()];
    for _ in 0..rounds {
        for (index, entrant) in entrants.iter().enumerate() {
            if !hopeless(&times, index) {
                let elapsed = (entrant.run)(program, &thresholds)?;
                times[index].push(elapsed.as_nanos() as f64);
            }
            context.step()?;
        }
    }
    let names = entrants.iter().map(|entrant| entrant.name).collect();
    let policies = entrants.iter().map(|entrant| entrant.policy).collect();
    Ok(Standings::of(names, policies, times))
}
