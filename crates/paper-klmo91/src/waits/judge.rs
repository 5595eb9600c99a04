//! The cost that each policy would have had on recorded waits: the analysis of section 4 of Karlin
//! et al. 1991.
//!
//! A lock's waits are taken to be drawn independently from the waits recorded for it. A program's
//! cost is the sum over its locks, each with its own distribution and its own learning. The costs
//! of the paper's policies are formulas. That of the default mutex comes from its own code, run on
//! such waits (`replay`). All costs are given as multiples of the off-line optimum's, which knows
//! each wait beforehand.
//!
//! Two results are theorems, for any waits: fixed spin costs at most 2 times the optimum, and the
//! best threshold at most e/(e-1) times. They are checked all the same: a failure would be a
//! mistake of this program.

use super::replay;
use stanchion_competitive::policy::Adaptive;
use stanchion_formulas::competitive::{
    CompetitiveError, Distribution, Offline, Strategy, cost_on_distribution, optimal_offline,
    optimal_threshold,
};

/// A policy: a column of table 1.
#[derive(Debug)]
pub struct Column {
    /// The behaviour of the policy. `None` for [`Adaptive`]: its own code is run on the waits.
    pub strategy: Option<Strategy>,
    /// The heading in table 1.
    pub head: &'static str,
    /// The type in `stanchion_competitive::policy`.
    pub policy: &'static str,
}

const fn column(strategy: Strategy, head: &'static str, policy: &'static str) -> Column {
    Column { strategy: Some(strategy), head, policy }
}

/// The number of policies.
pub const POLICIES: usize = 10;

/// The columns of table 1 in its order, the two policies of the paper that it does not have, and
/// the default mutex's.
pub const COLUMNS: [Column; POLICIES] = [
    column(Strategy::AlwaysBlock, "Block", "AlwaysBlock"),
    column(Strategy::AlwaysSpin, "Spin", "AlwaysSpin"),
    column(Strategy::FixedSpin(0.5), "Fixed C/2", "FixedSpin<50>"),
    column(Strategy::FixedSpin(1.0), "Fixed C", "FixedSpin"),
    column(Strategy::OptimalOnline, "Opt Online", "OptimalOnline"),
    column(Strategy::THREE_SAMPLES, "3-samples", "LastThreeSamples"),
    column(Strategy::WALK, "R-walk", "RandomWalk"),
    column(Strategy::APPROXIMATION, "Approx", "OptimalOnlineApproximation"),
    column(Strategy::Randomized, "Random", "Randomized"),
    Column { strategy: None, head: "Adaptive", policy: "Adaptive" },
];

/// The index in [`COLUMNS`] of the policy that always blocks.
pub const BLOCK: usize = 0;
/// The index of the policy that always spins.
pub const SPIN: usize = 1;
/// The index of the policy that spins for C.
pub const FIXED: usize = 3;
/// The index of the policy that spins for the best threshold.
pub const ONLINE: usize = 4;
/// The index of the default mutex's policy, after those of the paper.
pub const DEFAULT: usize = 9;
/// The indices of the policies that the paper calls competitive.
pub const COMPETITIVE: std::ops::RangeInclusive<usize> = 2..=6;

/// The multiples of C at which costs are computed. In section 5 the paper asks for the effect of
/// 500 µs instead of its 200.
pub const FACTORS: [f64; 3] = [1.0, 0.5, 2.5];

/// The cost of the waits of one lock, or of several, at one C: nanoseconds a wait, in the mean.
#[derive(Clone, Debug)]
pub struct Costs {
    /// The number of waits.
    pub waits: f64,
    /// The cost of the off-line optimum.
    pub optimum: f64,
    /// The cost of each policy.
    pub policies: [f64; POLICIES],
}

impl Costs {
    /// Computes the costs of one lock, with C of `switch` nanoseconds. `arrivals` are its waits by
    /// how many others they found.
    pub fn of(
        waits: &Distribution,
        arrivals: &[u64],
        switch: f64,
    ) -> Result<Self, CompetitiveError> {
        /// The waits of the approximation, which is simulated: 32 locks of a thousand waits each.
        const DRAWS: u32 = 32_000;
        const SEED: u64 = 1991;
        let mut policies = [0.0; POLICIES];
        for (cost, column) in policies.iter_mut().zip(&COLUMNS) {
            *cost = match column.strategy {
                Some(strategy) => cost_on_distribution(strategy, waits, switch, DRAWS, SEED)?.mean,
                None => replay::cost::<Adaptive>(waits, arrivals, switch, SEED)?,
            };
        }
        let optimum = optimal_offline(waits, switch)?.cost;
        Ok(Self { waits: waits.total_weight(), optimum, policies })
    }

    /// Computes the costs of a program: the mean over all waits of all locks.
    pub fn together<'c>(locks: impl Iterator<Item = &'c Self> + Clone) -> Self {
        let waits: f64 = locks.clone().map(|lock| lock.waits).sum();
        let mean = |of: &dyn Fn(&Self) -> f64| {
            locks.clone().map(|lock| lock.waits * of(lock)).sum::<f64>() / waits
        };
        Self {
            waits,
            optimum: mean(&|lock| lock.optimum),
            policies: std::array::from_fn(|policy| mean(&|lock| lock.policies[policy])),
        }
    }

    /// Returns the cost of each policy as a multiple of the optimum's.
    pub fn relative(&self) -> [f64; POLICIES] {
        self.policies.map(|cost| cost / self.optimum)
    }

    /// Returns a description of the theorem that these costs break, if they break one.
    pub fn broken(&self) -> Option<String> {
        /// The tolerance for sums of rounded numbers.
        const SLACK: f64 = 1.0 + 1e-9;
        let relative = self.relative();
        let broken = |policy: usize, bound: f64| {
            let cost = relative[policy];
            // A cost that is not a number breaks the bound too.
            let kept = cost <= bound * SLACK && cost >= 1.0 / SLACK;
            let name = COLUMNS[policy].policy;
            (!kept).then(|| {
                format!("{name} costs {cost} times the optimum, where 1 to {bound:.3} is proven")
            })
        };
        broken(FIXED, 2.0).or_else(|| broken(ONLINE, stanchion_formulas::competitive::E_RATIO))
    }
}

/// A lock's waits, judged.
#[derive(Debug)]
pub struct Judged {
    /// The costs at each of [`FACTORS`].
    pub costs: [Costs; FACTORS.len()],
    /// The behaviour of the optimum at C: a row of table 2.
    pub offline: Offline,
    /// The best threshold at C, in nanoseconds.
    pub threshold: f64,
}

impl Judged {
    /// Judges the waits of one lock, with C of `switch` nanoseconds. `arrivals` are its waits by
    /// how many others they found.
    pub fn of(
        waits: &Distribution,
        arrivals: &[u64],
        switch: f64,
    ) -> Result<Self, CompetitiveError> {
        let [one, half, more] = FACTORS.map(|factor| Costs::of(waits, arrivals, factor * switch));
        Ok(Self {
            costs: [one?, half?, more?],
            offline: optimal_offline(waits, switch)?,
            threshold: optimal_threshold(waits, switch)?.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_the_sum_of_its_locks() {
        let short = Distribution::from_points(&[(100.0, 9.0)]).unwrap();
        let long = Distribution::from_points(&[(10_000.0, 1.0)]).unwrap();
        let [short, long] = [short, long].map(|waits| Costs::of(&waits, &[1], 1_000.0).unwrap());
        let all = Costs::together([&short, &long].into_iter());
        // The optimum spins nine times and blocks once; the best thresholds do the same, lock by
        // lock.
        assert!((all.optimum - 190.0).abs() < 1e-9);
        assert!((all.relative()[ONLINE] - 1.0).abs() < 1e-9);
        assert!((all.relative()[BLOCK] - 1_000.0 / 190.0).abs() < 1e-9);
        assert!((all.relative()[FIXED] - 290.0 / 190.0).abs() < 1e-9);
        assert_eq!(all.broken(), None);
    }

    #[test]
    fn a_broken_theorem_is_noticed() {
        let waits = Distribution::from_points(&[(100.0, 1.0)]).unwrap();
        let mut costs = Costs::of(&waits, &[1], 1_000.0).unwrap();
        assert_eq!(costs.broken(), None);
        costs.policies[ONLINE] = 159.0;
        assert!(costs.broken().unwrap().contains("OptimalOnline costs 1.59"));
        costs.policies[FIXED] = f64::NAN;
        assert!(costs.broken().unwrap().contains("FixedSpin"));
        costs.policies[FIXED] = 99.0;
        assert!(costs.broken().unwrap().contains("0.99"), "less than the optimum");
    }
}
