//! The cost of a policy on recorded waits, by running the policy's own code on them.
//!
//! Why not a formula, as for the paper's policies: the default's rules change with its code, and
//! they ask for more than the length of the wait.
//!
//! Each wait is drawn independently, as elsewhere in this module. The policy is asked for its
//! threshold, and then receives the wait, as the lock does it. A wait that is longer than the
//! threshold is taken to block once. A recording says how many others a wait found, and not
//! whether they spun. So many of them are taken to spin as the policy's own waits do: by the share
//! of their time that they have spun so far.

use stanchion_competitive::policy::{Contention, Policy, Wait};
use stanchion_formulas::Random;
use stanchion_formulas::competitive::{CompetitiveError, Distribution};

/// The number of waits that are drawn, for all locks together.
const DRAWS: u32 = 32_000;
/// The most waits of a lock. Each lock has as many as were recorded, and a policy that has learnt
/// nothing yet: so learning weighs as much as it did in the program.
const MOST: u32 = 1_000;

/// Returns the mean cost of a wait, in nanoseconds, if `P` decides for how long it spins and
/// blocking costs `switch`. `arrivals` are the waits by how many others they found.
pub(super) fn cost<P: Policy>(
    waits: &Distribution,
    arrivals: &[u64],
    switch: f64,
    seed: u64,
) -> Result<f64, CompetitiveError> {
    let found = arrivals.iter().enumerate().map(|(others, &count)| (others as f64, count as f64));
    let found = match Distribution::from_points(&found.collect::<Vec<_>>()) {
        Err(CompetitiveError::Empty) => None,
        found => Some(found?),
    };
    let mut random = Random::new(seed);
    let mut sum = 0.0;
    let each = (waits.total_weight() as u32).clamp(1, MOST);
    let locks = DRAWS / each;
    for _ in 0..locks {
        let policy = P::INIT;
        let (mut waited, mut spun) = (0.0, 0.0);
        for _ in 0..each {
            let length = waits.sample(&mut random);
            let others = found.as_ref().map_or(0.0, |found| found.sample(&mut random));
            let share = if waited > 0.0 { spun / waited } else { 1.0 };
            // A part of a spinner is one as often.
            let spinners = (others * share + random.unit()).floor();
            let contention = Contention::new(None, switch as u64)
                .with_others(spinners as u32, (others - spinners).max(0.0) as u32);
            let threshold = policy.threshold(&contention) as f64;
            let blocks = length > threshold;
            let spins = length.min(threshold);
            sum += spins + if blocks { switch } else { 0.0 };
            waited += length;
            spun += spins;
            let (spins, blocked) = (spins as u64, (length - spins) as u64);
            policy.adjust(&Wait::new(spins, blocked, blocks.into(), switch as u64));
        }
    }
    Ok(sum / f64::from(locks * each))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_competitive::policy::{Adaptive, AlwaysBlock, AlwaysSpin, FixedSpin, RandomWalk};
    use stanchion_formulas::competitive::{Strategy, cost_on_distribution};
    use stanchion_machine::topology;

    const C: f64 = 5_000.0;

    fn mixed() -> Distribution {
        Distribution::from_points(&[(800.0, 700.0), (90_000.0, 300.0)]).unwrap()
    }

    fn of<P: Policy>(waits: &Distribution, arrivals: &[u64]) -> f64 {
        cost::<P>(waits, arrivals, C, 1).unwrap()
    }

    #[test]
    fn the_paper_s_policies_cost_what_the_formulas_say() {
        let waits = mixed();
        for (replayed, strategy) in [
            (of::<AlwaysBlock>(&waits, &[1]), Strategy::AlwaysBlock),
            (of::<AlwaysSpin>(&waits, &[1]), Strategy::AlwaysSpin),
            (of::<FixedSpin>(&waits, &[1]), Strategy::FixedSpin(1.0)),
            (of::<FixedSpin<50>>(&waits, &[]), Strategy::FixedSpin(0.5)),
            (of::<RandomWalk>(&waits, &[1, 1]), Strategy::WALK),
        ] {
            let exact = cost_on_distribution(strategy, &waits, C, 0, 0).unwrap().mean;
            assert!((replayed / exact - 1.0).abs() < 0.03, "{strategy}: {replayed}, {exact}");
        }
    }

    #[test]
    fn the_default_learns_what_is_too_long() {
        if topology::usable() == 1 {
            return eprintln!("skipped: on one processor the default never spins");
        }
        let short = Distribution::from_points(&[(800.0, 1e6)]).unwrap();
        assert_eq!(of::<Adaptive>(&short, &[1]), 800.0);
        // It spins for 13 waits of a thousand, for up to 16 C.
        let long = Distribution::from_points(&[(200_000.0, 1_000.0)]).unwrap();
        let cost = of::<Adaptive>(&long, &[1]);
        assert!((C..1.2 * C).contains(&cost), "{cost}");
        // To learn it costs a lock of few waits more.
        let few = Distribution::from_points(&[(200_000.0, 100.0)]).unwrap();
        let cost = of::<Adaptive>(&few, &[1]);
        assert!((2.0 * C..2.2 * C).contains(&cost), "{cost}");
    }

    #[test]
    fn one_spins_and_the_others_block() {
        if topology::usable() == 1 {
            return eprintln!("skipped: on one processor the default never spins");
        }
        let short = Distribution::from_points(&[(800.0, 1e6)]).unwrap();
        // Half of the waits find another, which spins two times of three.
        let beside = of::<Adaptive>(&short, &[1, 1]);
        assert!((1_000.0..C).contains(&beside), "{beside}");
        // A policy that spins beside others costs the same.
        assert_eq!(of::<FixedSpin>(&short, &[1, 1]), 800.0);
    }

    #[test]
    fn no_wait_costs_nothing_and_none_that_lasts_for_ever_is_lost() {
        let none = Distribution::from_points(&[(0.0, 1.0)]).unwrap();
        assert_eq!(of::<AlwaysBlock>(&none, &[1]), 0.0);
        let ever = Distribution::from_points(&[(f64::INFINITY, 1.0)]).unwrap();
        assert_eq!(of::<FixedSpin>(&ever, &[1]), 2.0 * C);
    }
}
