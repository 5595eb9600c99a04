//! Proven laws of spinning must hold for every distribution and every trace: proptest looks for a
//! counterexample.

use proptest::prelude::{Just, Strategy as Values, prop};
use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};
use stanchion_formulas::competitive::*;

/// Room for rounding errors of sums.
const ROUNDING: f64 = 1.0 + 1e-9;

/// A length of a wait: short, about a context switch, on a round number, long, or none.
fn length() -> impl Values<Value = f64> {
    prop_oneof![
        4 => 0.0..50.0,
        4 => 50.0..400.0,
        2 => (0_u32..60).prop_map(|units| f64::from(units) * 16.0),
        1 => 400.0..100_000.0,
        1 => Just(0.0),
    ]
}

fn distribution() -> impl Values<Value = Distribution> {
    let weight = prop_oneof![0.001..1.0, (1_u32..1000).prop_map(f64::from)];
    prop::collection::vec((length(), weight), 1..20)
        .prop_map(|points| Distribution::from_points(&points).expect("sound points"))
}

fn trace() -> impl Values<Value = Vec<f64>> {
    prop::collection::vec(length(), 1..60)
}

fn switch() -> impl Values<Value = f64> {
    prop_oneof![Just(200.0), 0.5..1000.0]
}

fn agree(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Returns the cost of `strategy` if that is exact.
fn exact(strategy: Strategy, waits: &Distribution, switch: f64) -> f64 {
    let cost = cost_on_distribution(strategy, waits, switch, 0, 0).unwrap();
    assert_eq!((cost.runs, cost.standard_error), (0, 0.0));
    cost.mean
}

proptest! {
    #[test]
    fn a_fixed_threshold_keeps_its_ratio(waits in distribution(), switch in switch(), any in 0.05..5.0) {
        let optimum = optimal_offline(&waits, switch).unwrap().cost;
        for (fraction, bound) in [(1.0, 2.0), (0.5, 3.0), (any, 1.0 + f64::max(any, 1.0 / any))] {
            let strategy = Strategy::FixedSpin(fraction);
            prop_assert_eq!(competitive_ratio(strategy).unwrap(), Some(bound));
            let cost = exact(strategy, &waits, switch);
            prop_assert!(cost <= bound * optimum * ROUNDING, "{strategy}: {cost} > {bound} · {optimum}");
        }
    }

    /// A wait just beyond the threshold costs as much as the bound allows.
    #[test]
    fn a_fixed_threshold_reaches_its_ratio(switch in switch(), fraction in 0.05..5.0) {
        let bound = competitive_ratio(Strategy::FixedSpin(fraction)).unwrap().unwrap();
        let wait = Distribution::from_samples(&[fraction * switch * ROUNDING]).unwrap();
        let cost = exact(Strategy::FixedSpin(fraction), &wait, switch);
        let ratio = cost / optimal_offline(&wait, switch).unwrap().cost;
        prop_assert!((ratio / bound - 1.0).abs() < 1e-6, "{ratio} against {bound}");
    }

    #[test]
    fn knowing_the_distribution_costs_at_most_e_over_e_minus_1(waits in distribution(), switch in switch()) {
        let optimum = optimal_offline(&waits, switch).unwrap().cost;
        let (_, cost) = optimal_threshold(&waits, switch).unwrap();
        prop_assert!(cost <= E_RATIO * optimum * ROUNDING);
        prop_assert!(cost * ROUNDING >= optimum);
    }

    #[test]
    fn no_threshold_of_a_fine_grid_costs_less_than_the_optimal_one(waits in distribution(), switch in switch()) {
        let (threshold, cost) = optimal_threshold(&waits, switch).unwrap();
        let longest = waits.points().last().unwrap().0;
        let grid = (0..=2000).map(|step| longest.max(switch) * 1.1 * f64::from(step) / 2000.0);
        let ends = waits.points().iter().flat_map(|&(end, _)| [end / ROUNDING, end, end * ROUNDING]);
        for tried in grid.chain(ends).chain([f64::INFINITY]) {
            let other = expected_cost(&waits, tried, switch).unwrap();
            prop_assert!(cost <= other * ROUNDING, "{threshold} costs {cost}, {tried} costs {other}");
        }
    }

    /// The running sums of one pass are the same as adding everything up anew for each candidate.
    #[test]
    fn one_pass_agrees_with_starting_from_scratch(waits in distribution(), switch in switch()) {
        let (threshold, cost) = optimal_threshold(&waits, switch).unwrap();
        let candidates = waits.points().iter().map(|point| point.0).chain([0.0]);
        let costs = candidates.map(|tried| expected_cost(&waits, tried, switch).unwrap());
        prop_assert!(agree(cost, costs.fold(f64::INFINITY, f64::min)));
        prop_assert!(agree(cost, expected_cost(&waits, threshold, switch).unwrap()));
    }

    /// With independent waits every strategy is a mixture of thresholds, and no mixture beats the
    /// best of them.
    #[test]
    fn no_strategy_beats_the_optimal_on_line_one(waits in distribution(), switch in switch()) {
        let (_, best) = optimal_threshold(&waits, switch).unwrap();
        // The approximation is simulated, so it is only about as good.
        for strategy in Strategy::ALL.into_iter().filter(|&s| s != Strategy::APPROXIMATION) {
            let cost = exact(strategy, &waits, switch);
            prop_assert!(cost * ROUNDING >= best, "{strategy}: {cost} < {best}");
        }
    }

    #[test]
    fn on_a_trace_every_bound_holds_with_nothing_added(trace in trace(), switch in switch()) {
        let optimum = offline_on_trace(&trace, switch).unwrap();
        for strategy in Strategy::ALL {
            let cost = cost_on_trace(strategy, &trace, switch).unwrap();
            prop_assert!(cost * ROUNDING >= optimum, "{strategy}: {cost} < {optimum}");
            if let Some(bound) = competitive_ratio(strategy).unwrap() {
                prop_assert!(cost <= bound * optimum * ROUNDING, "{strategy}: {cost} > {bound} · {optimum}");
            }
        }
    }

    /// If the order of waits does not matter, a trace costs as much as its distribution.
    #[test]
    fn a_trace_costs_what_its_distribution_costs(trace in trace(), switch in switch()) {
        let waits = Distribution::from_samples(&trace).unwrap();
        for strategy in Strategy::ALL {
            let ordered = matches!(
                strategy,
                Strategy::OptimalOnlineApproximation { .. } | Strategy::LastThreeSamples { .. } | Strategy::RandomWalk { .. }
            );
            if !ordered {
                let cost = cost_on_trace(strategy, &trace, switch).unwrap();
                let drawn = trace.len() as f64 * exact(strategy, &waits, switch);
                prop_assert!(agree(cost, drawn), "{strategy}: {cost} and {drawn}");
            }
        }
    }

    /// The approximation's counts are the distribution of all waits so far, rounded up and cut.
    #[test]
    fn the_approximation_has_the_threshold_of_all_it_saw(trace in trace(), switch in switch()) {
        let mut lock = Learner::new(Strategy::APPROXIMATION, switch).unwrap();
        let (step, cap) = (0.32 * switch, 5.04 * switch);
        let mut seen = Vec::new();
        for wait in trace {
            lock.observe(wait).unwrap();
            let steps = (0..=16).map(f64::from).find(|steps| steps * step * ROUNDING >= wait.min(cap)).unwrap();
            seen.push((steps * step).min(cap));
            let all = Distribution::from_samples(&seen).unwrap();
            prop_assert_eq!(lock.threshold(), optimal_threshold(&all, switch).unwrap().0);
        }
    }

    #[test]
    fn three_samples_in_any_order_are_a_distribution(a in length(), b in length(), c in length(), switch in switch()) {
        let waits = Distribution::from_samples(&[a, b, c]).unwrap();
        let best = best_of_three(a, b, c, switch).unwrap();
        prop_assert!(agree(expected_cost(&waits, best, switch).unwrap(), optimal_threshold(&waits, switch).unwrap().1));
        prop_assert!(best <= 3.0 * switch * ROUNDING);
        for (a, b, c) in [(a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)] {
            prop_assert_eq!(best_of_three(a, b, c, switch).unwrap(), best);
        }
    }

    #[test]
    fn the_optimum_is_what_table_2_says_of_it(waits in distribution(), switch in switch()) {
        let optimum = optimal_offline(&waits, switch).unwrap();
        let spun = (1.0 - optimum.share_blocked) * optimum.mean_spin.unwrap_or(0.0);
        prop_assert!(agree(optimum.share_blocked * switch + spun, optimum.cost));
        prop_assert!(optimum.mean_spin.is_none_or(|spin| spin < switch));
        prop_assert_eq!(optimum.mean_spin.is_none(), optimum.share_blocked == 1.0);
    }

    /// Another unit of time changes no choice. (Powers of two, so that no length falls to the other
    /// side of a threshold.)
    #[test]
    fn the_unit_does_not_matter(waits in distribution(), power in -20..20) {
        let factor = f64::from(power).exp2();
        let scaled = waits.scale(factor).unwrap();
        for strategy in Strategy::ALL {
            let here = cost_on_distribution(strategy, &waits, 200.0, 64, 3).unwrap().mean;
            let there = cost_on_distribution(strategy, &scaled, 200.0 * factor, 64, 3).unwrap().mean;
            prop_assert!(agree(here * factor, there), "{strategy}: {here} and {there}");
        }
    }

    #[test]
    fn of_a_merged_distribution_costs_are_averages(one in distribution(), other in distribution(), threshold in 0.0..500.0) {
        let both = one.merge(&other).unwrap();
        let cost = |waits: &Distribution| expected_cost(waits, threshold, 200.0).unwrap() * waits.total_weight();
        prop_assert!(agree(cost(&both), cost(&one) + cost(&other)));
        // One threshold for both is no better than one for each.
        let best = |waits: &Distribution| optimal_threshold(waits, 200.0).unwrap().1 * waits.total_weight();
        prop_assert!(best(&both) * ROUNDING >= best(&one) + best(&other));
    }

    /// A recorder that gives up at 5.04 C hides nothing from a strategy that has blocked by then,
    /// and makes the others look better.
    #[test]
    fn cut_waits_flatter_a_spin_to_their_end(waits in distribution()) {
        let cut = waits.cut_at(1008.0).unwrap();
        for strategy in Strategy::ALL {
            let cost = |waits| cost_on_distribution(strategy, waits, 200.0, 64, 9).unwrap().mean;
            let (whole, seen) = (cost(&waits), cost(&cut));
            prop_assert!(seen <= whole * ROUNDING, "{strategy}: {seen} > {whole}");
            let to_the_end = matches!(
                strategy,
                Strategy::AlwaysSpin | Strategy::OptimalOnline | Strategy::OptimalOnlineApproximation { .. }
            );
            prop_assert!(to_the_end || agree(seen, whole), "{strategy}: {seen} and {whole}");
        }
    }

    /// The long-run flow into a threshold of the random walk is the flow out of it, step by step as
    /// [`random_walk_step`] defines.
    #[test]
    fn the_walk_is_in_balance(waits in distribution(), switch in switch(), step in 0.02..1.5) {
        let step = step * switch;
        let shares = walk_thresholds(&waits, step, switch).unwrap();
        let points = shares.points();
        prop_assert!((shares.total_weight() - 1.0).abs() < 1e-9);
        let down = waits.share_above(switch);
        let mut arrived = vec![0.0; points.len()];
        for &(threshold, share) in points {
            for (wait, chance) in [(switch, 1.0 - down), (switch * 2.0, down)] {
                let next = random_walk_step(threshold, wait, step, switch).unwrap();
                let near = |at: &(f64, f64)| (at.0 - next).abs() < 1e-7 * switch;
                match points.iter().position(near) {
                    Some(index) => arrived[index] += share * chance,
                    // Thresholds too unlikely to have a weight at all are not listed.
                    None => prop_assert!(share * chance < 1e-300, "no {next} after {threshold}"),
                }
            }
        }
        for (point, arrived) in points.iter().zip(arrived) {
            prop_assert!((point.1 - arrived).abs() < 1e-9, "at {}: {} but {arrived} arrive", point.0, point.1);
        }
    }

    #[test]
    fn quantiles_of_the_randomized_threshold_rise_over_0_to_c(u in 0.0..=1.0, v in 0.0..=1.0, switch in switch()) {
        let at = |u| randomized_threshold(u, switch).unwrap();
        prop_assert!((0.0..=switch * ROUNDING).contains(&at(u)));
        prop_assert!((u <= v) == (at(u) <= at(v)) || agree(at(u), at(v)));
    }

    /// The closed form against the midpoint rule over quantiles, and against the density.
    #[test]
    fn the_randomized_cost_is_an_integral(wait in length(), switch in switch()) {
        const PARTS: u32 = 4000;
        let middle = |part| (f64::from(part) + 0.5) / f64::from(PARTS);
        let closed = randomized_cost(wait, switch).unwrap();
        let over_quantiles: f64 = (0..PARTS)
            .map(|part| cost(randomized_threshold(middle(part), switch).unwrap(), wait, switch).unwrap() / f64::from(PARTS))
            .sum();
        let over_density: f64 = (0..PARTS)
            .map(|part| {
                let threshold = middle(part) * switch;
                let paid = cost(threshold, wait, switch).unwrap();
                paid * randomized_density(threshold, switch).unwrap() * switch / f64::from(PARTS)
            })
            .sum();
        // One part of the integral lies on both sides of the jump by C where the threshold is the
        // wait.
        let jump = 3.0 * switch / f64::from(PARTS);
        prop_assert!((closed - over_quantiles).abs() <= jump, "{closed} and {over_quantiles}");
        prop_assert!((closed - over_density).abs() <= jump, "{closed} and {over_density}");
    }
}
