//! The programs and the strategies on this computer.

use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::OptimalOnline;
use stanchion_competitive::waits::{self, Recorder};

use super::race::{BLOCK, Standings, hopeless, thresholds};
use super::recording::{LONGEST_SPIN, Recorded, switch};
use crate::waits::pool::Pool;
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::{Precision, Repeated, rounds_until};
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

/// Runs `program` with every strategy, round after round, until the times of those that decide,
/// over that of always-block in the same round, are known as precisely as is required. `recorded`
/// are waits of the same program. `decides` says whether an entrant decides; always-block does.
pub(crate) fn run<A: Program>(
    context: &Context,
    program: &A,
    recorded: &Recorded,
    precision: Precision,
    decides: impl Fn(usize) -> bool,
) -> Result<(Standings, Repeated), Stop> {
    let thresholds = thresholds(recorded)?;
    let entrants = entrants::<A>();
    let mut times = vec![Vec::new(); entrants.len()];
    let (_, repeated) = rounds_until(
        context,
        entrants.len(),
        precision,
        |entrant, _| {
            if !hopeless(&times, entrant) {
                let elapsed = (entrants[entrant].run)(program, &thresholds)?;
                times[entrant].push(elapsed.as_nanos() as f64);
            }
            // If the strategy is not run again, its last time stands for this round.
            Ok(times[entrant].last().copied().unwrap_or(f64::NAN))
        },
        // With one processor nothing is judged.
        |entrant| program.processors() > 1 && decides(entrant),
        |times| times[BLOCK + 1..].iter().map(|&time| time / times[BLOCK]).collect(),
    )?;
    let names = entrants.iter().map(|entrant| entrant.name).collect();
    let policies = entrants.iter().map(|entrant| entrant.policy).collect();
    Ok((Standings::of(names, policies, times), repeated))
}
