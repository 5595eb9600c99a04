//! Tests of costs worked out by hand, of distributions with a known answer, of closed forms against
//! simulation, and of errors.

use stanchion_formulas::competitive::*;
use stanchion_formulas::{Estimate, Random};

/// A context switch, in spins, on the paper's machine.
const C: f64 = 200.0;

fn points(points: &[(f64, f64)]) -> Distribution {
    Distribution::from_points(points).unwrap()
}

fn mean(strategy: Strategy, waits: &Distribution) -> f64 {
    cost_on_distribution(strategy, waits, C, 0, 0).unwrap().mean
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// Seven of ten waits last 16 spins, two 96, one 800.
///
/// - Off-line: 0.7·16 + 0.2·96 + 0.1·200 = 50.4. It blocks in 0.1, and spins 30.4/0.9 = 33.8
///   otherwise.
/// - Block: 200.
/// - Spin: 0.7·16 + 0.2·96 + 0.1·800 = 110.4.
/// - C/2: 0.7·16 + 0.2·96 + 0.1·300 = 60.4.
/// - C: 0.7·16 + 0.2·96 + 0.1·400 = 70.4.
/// - On-line: at 16: 11.2 + 0.3·216 = 76; at 96: 30.4 + 0.1·296 = 60; at 0: 200. So 60.
/// - Three samples: a triple of which two or three are 800 and none or one 16 or 96; see below.
/// - Randomized: 50.4·e/(e-1).
///
/// Three samples, by how many are (16, 96, 800): (3,0,0) → 16. (2,1,0): 16 costs 248, 96 costs 128
/// → 96. (1,2,0) and (0,3,0) → 96. (2,0,1): 16 costs 248 → 16. (1,1,1): 16 costs 448, 96 costs 408,
/// 800 costs 912 → 96. (0,2,1): 96 costs 488, 0 costs 600 → 96. (1,0,2): 16 costs 448 → 16.
/// (0,1,2): 96 costs 688, 0 costs 600 → 0. (0,0,3) → 0. With chances 0.343 + 3·0.49·0.1 +
/// 3·0.7·0.01 = 0.511 for 16, 3·0.2·0.01 + 0.001 = 0.007 for 0 and 0.482 for 96: 0.511·76 +
/// 0.007·200 + 0.482·60 = 69.156.
#[test]
fn ten_waits_by_hand() {
    let waits = Distribution::from_buckets(&[16.0, 96.0, 800.0], &[7, 2, 1]).unwrap();
    let optimum = optimal_offline(&waits, C).unwrap();
    assert!(close(optimum.cost, 50.4) && close(optimum.share_blocked, 0.1));
    assert!(close(optimum.mean_spin.unwrap(), 30.4 / 0.9));
    for (strategy, cost) in [
        (Strategy::AlwaysBlock, 200.0),
        (Strategy::AlwaysSpin, 110.4),
        (Strategy::FixedSpin(0.5), 60.4),
        (Strategy::FixedSpin(1.0), 70.4),
        (Strategy::OptimalOnline, 60.0),
        (Strategy::THREE_SAMPLES, 69.156),
        (Strategy::Randomized, 50.4 * E_RATIO),
    ] {
        assert!(close(mean(strategy, &waits), cost), "{strategy}: {}", mean(strategy, &waits));
    }
    assert_eq!(optimal_threshold(&waits, C).unwrap().0, 96.0);
}

/// C is two steps of 100; one wait in four is longer than C. Birth and death with p = 3/4, q = 1/4:
/// thresholds 0, 100, 200 have shares 1 : 3 : 9. Waits are 50, 50, 150, 1000, so the thresholds
/// cost 200, (50 + 50 + 300 + 300)/4 = 175 and (50 + 50 + 150 + 400)/4 = 162.5. Together (200 +
/// 3·175 + 9·162.5)/13 = 2187.5/13.
#[test]
fn a_walk_of_whole_steps_by_hand() {
    let waits = points(&[(50.0, 2.0), (150.0, 1.0), (1000.0, 1.0)]);
    let shares = walk_thresholds(&waits, 100.0, C).unwrap();
    let [low, middle, high] = shares.points() else { panic!("{shares:?}") };
    assert!(close(low.1, 1.0 / 13.0) && close(middle.1, 3.0 / 13.0) && close(high.1, 9.0 / 13.0));
    assert_eq!((low.0, middle.0, high.0), (0.0, 100.0, 200.0));
    assert!(close(mean(Strategy::RandomWalk { step: 0.5 }, &waits), 2187.5 / 13.0));
}

/// C is 1½ steps of 2; a fair coin. Up 0 → 2 → 3, down 3 → 1 → 0. What flows in flows out: with x
/// at 2, half of which goes to 3 and half to 0, and y at 1, likewise, a at 0 = a/2 + x/2 + y/2, x =
/// a/2; b at 3 = b/2 + x/2 + y/2, y = b/2. So a = b = 2x = 2y: shares 1/3 at 0, 1/6 at 1, 1/6 at 2,
/// 1/3 at 3.
#[test]
fn a_walk_on_two_tracks_by_hand() {
    let coin = points(&[(1.0, 1.0), (10.0, 1.0)]);
    let shares = walk_thresholds(&coin, 2.0, 3.0).unwrap();
    let expected = [(0.0, 1.0 / 3.0), (1.0, 1.0 / 6.0), (2.0, 1.0 / 6.0), (3.0, 1.0 / 3.0)];
    assert_eq!(shares.points().len(), 4);
    for (point, expected) in shares.points().iter().zip(expected) {
        assert!(point.0 == expected.0 && close(point.1, expected.1), "{shares:?}");
    }
}

/// Ten steps of 0.1 up and ten down do not meet on the same floating-point numbers, and are the
/// same eleven thresholds.
#[test]
fn a_walk_of_whole_steps_has_one_track() {
    let coin = points(&[(0.5, 1.0), (2.0, 1.0)]);
    let shares = walk_thresholds(&coin, 0.1, 1.0).unwrap();
    assert_eq!(shares.points().len(), 11, "{shares:?}");
    assert!(shares.points().iter().all(|point| close(point.1, 1.0 / 11.0)), "{shares:?}");
}

/// A walk that only ever goes one way stays at that end, however many steps there are.
#[test]
fn a_walk_that_never_turns_ends() {
    // C itself is not longer than C.
    let (short, long) = (points(&[(10.0, 1.0), (C, 1.0)]), points(&[(1e9, 3.0)]));
    for step in [1e-4, 0.08, 0.5, 3.0] {
        assert_eq!(walk_thresholds(&short, step * C, C).unwrap().points(), [(200.0, 1.0)]);
        assert_eq!(walk_thresholds(&long, step * C, C).unwrap().points(), [(0.0, 1.0)]);
    }
}

/// 500 then 20 twice, walk by steps of 16 from 200: thresholds 200, 184, 200, so 400 + 20 + 20.
/// Three samples: 200, then with {500 → 512} alone 0, then with {512, 32}: 0 costs 400, 32 costs
/// 264 = 32 + 232 → 32: so 400 + 200 + 20. Approximation: 200, {512} → 0, then {512, 64}: 0 costs
/// 400, 64 costs 328 → 64: 400 + 200 + 20.
#[test]
fn a_trace_by_hand() {
    let trace = [500.0, 20.0, 20.0];
    for (strategy, cost) in [
        (Strategy::AlwaysBlock, 600.0),
        (Strategy::AlwaysSpin, 540.0),
        (Strategy::FixedSpin(0.5), 340.0),
        (Strategy::OptimalOnline, 260.0), // at 20: 220 + 20 + 20
        (Strategy::WALK, 440.0),
        (Strategy::THREE_SAMPLES, 620.0),
        (Strategy::APPROXIMATION, 620.0),
        (Strategy::Randomized, 240.0 * E_RATIO),
    ] {
        let paid = cost_on_trace(strategy, &trace, C).unwrap();
        assert!(close(paid, cost), "{strategy}: {paid}");
    }
}

/// Order matters to strategies that learn: sorted waits suit the walk, alternating ones fool it at
/// every turn.
#[test]
fn locality_helps_the_random_walk() {
    let sorted: Vec<_> = (0..200).map(|at| if at < 100 { 150.0 } else { 5000.0 }).collect();
    let alternating: Vec<_> = (0..200).map(|at| if at % 2 == 0 { 150.0 } else { 5000.0 }).collect();
    let cost = |trace: &[f64]| cost_on_trace(Strategy::WALK, trace, C).unwrap();
    assert!(cost(&sorted) < 0.75 * cost(&alternating));
    let fixed = |trace: &[f64]| cost_on_trace(Strategy::FixedSpin(1.0), trace, C).unwrap();
    assert_eq!(fixed(&sorted), fixed(&alternating));
}

/// Spinning for longer than a context switch can be best: half of the waits last 0.8 C, half 1.1 C
/// (the case in `threshold.rs`).
#[test]
fn the_best_threshold_may_be_beyond_a_context_switch() {
    let waits = points(&[(160.0, 1.0), (220.0, 1.0)]);
    let (threshold, cost) = optimal_threshold(&waits, C).unwrap();
    assert_eq!(threshold, 220.0);
    assert!(close(cost, 190.0) && close(expected_cost(&waits, 160.0, C).unwrap(), 260.0));
}

/// 100 and 300: to block at once costs 2·200, to spin for 100 costs 100 + 300, for 300 costs 100 +
/// 300. Of equals the shortest.
#[test]
fn of_thresholds_that_cost_the_same_the_shortest_is_taken() {
    assert_eq!(optimal_threshold(&points(&[(100.0, 1.0), (300.0, 1.0)]), C).unwrap(), (0.0, C));
    assert_eq!(best_of_three(100.0, 500.0, 0.0, C).unwrap(), 0.0);
}

/// At C the off-line optimum pays C either way. Section 2.3 makes it block.
#[test]
fn a_wait_as_long_as_a_context_switch_blocks() {
    let optimum = optimal_offline(&points(&[(199.0, 1.0), (C, 3.0)]), C).unwrap();
    assert_eq!((optimum.share_blocked, optimum.mean_spin), (0.75, Some(199.0)));
}

/// Steps of 64 and a cap of 100: 70 is rounded up to 128, and cut to 100.
#[test]
fn waits_are_rounded_first_and_cut_then() {
    let (step, cap) = (0.32, 0.5);
    for strategy in [
        Strategy::LastThreeSamples { step, cap },
        Strategy::OptimalOnlineApproximation { step, cap },
    ] {
        let mut lock = Learner::new(strategy, C).unwrap();
        for (wait, threshold) in [(60.0, 64.0), (70.0, 100.0), (64.0, 100.0)] {
            lock.observe(wait).unwrap();
            assert_eq!(lock.threshold(), threshold, "{strategy} after {wait}");
        }
    }
}

/// If a recorder gives up, there may seem to be an optimum that is none. At each multiple of 100
/// three of five waits that are left end, so waiting for the next is worth it (100/0.6 < 200).
/// After 900 the rest lasts until 1500, and it is best to block. Cut at 1008 the rest seems to end
/// after 108 more, and it seems best to spin.
#[test]
fn a_cut_may_mislead_the_optimal_on_line_strategy() {
    let left = |step: i32| 0.4_f64.powi(step);
    let body = (1..=9).map(|step| (100.0 * f64::from(step), left(step - 1) - left(step)));
    let waits = points(&body.chain([(1500.0, left(9))]).collect::<Vec<_>>());
    let (threshold, cost) = optimal_threshold(&waits, C).unwrap();
    let (misled, seeming) = optimal_threshold(&waits.cut_at(1008.0).unwrap(), C).unwrap();
    assert_eq!((threshold, misled), (900.0, 1008.0));
    assert!(seeming < cost && cost < expected_cost(&waits, misled, C).unwrap());
}

/// Memoryless waits have the same future at every moment, so it is best to spin for ever or not at
/// all: the former if their mean is below C.
#[test]
fn memoryless_waits_are_all_or_nothing() {
    let geometric = |mean: f64| {
        let stay: f64 = 1.0 - 1.0 / mean;
        // The rest of the weight is on the last length, where the endless distribution is cut: 50
        // means on, e^-50.
        let last = (50.0 * mean) as i32;
        let body = (1..last).map(|length| (f64::from(length), stay.powi(length - 1) / mean));
        Distribution::from_points(
            &body.chain([(f64::from(last), stay.powi(last - 1))]).collect::<Vec<_>>(),
        )
    };
    let short = geometric(150.0).unwrap();
    let (threshold, cost) = optimal_threshold(&short, C).unwrap();
    assert!(threshold > 20.0 * C && (cost - 150.0).abs() < 1e-6, "{threshold} {cost}");
    let (threshold, cost) = optimal_threshold(&geometric(250.0).unwrap(), C).unwrap();
    assert!(threshold == 0.0 && close(cost, C), "{threshold} {cost}");
}

/// Lim and Agarwal ("Waiting algorithms for synchronization in large-scale multiprocessors", TOCS
/// 1993): for exponential waits a fixed threshold of ln(e-1) C, about 0.54 C, costs at most e/(e-1)
/// times the optimum, whatever their mean; no other threshold does.
#[test]
fn exponential_waits_and_the_threshold_of_0_54() {
    let worst = |fraction: f64| {
        let means = (-40..=80).map(|step| C * (f64::from(step) / 10.0).exp2());
        let ratios = means.map(|mean| {
            // Equally likely lengths, in the middle of their quantiles.
            let quantiles =
                (0..4000).map(|part| -mean * (-(f64::from(part) + 0.5) / 4000.0).ln_1p());
            let waits = Distribution::from_samples(&quantiles.collect::<Vec<_>>()).unwrap();
            mean_ratio(Strategy::FixedSpin(fraction), &waits)
        });
        ratios.fold(0.0, f64::max)
    };
    let best = (std::f64::consts::E - 1.0).ln();
    assert!((worst(best) - E_RATIO).abs() < 0.005, "{}", worst(best));
    assert!(worst(best - 0.1) > E_RATIO + 0.02 && worst(best + 0.1) > E_RATIO + 0.02);
}

fn mean_ratio(strategy: Strategy, waits: &Distribution) -> f64 {
    mean(strategy, waits) / optimal_offline(waits, C).unwrap().cost
}

/// The bound e/(e-1) is reached: if waits are exponential of mean C as far as C and all longer ones
/// last for ever, every threshold up to C costs C.
#[test]
fn the_worst_distribution_reaches_e_over_e_minus_1() {
    let parts = 20_000;
    let edge = |part: i32| f64::from(part) / f64::from(parts);
    let body = (0..parts).map(|part| {
        ((edge(part) + edge(part + 1)) / 2.0 * C, (-edge(part)).exp() - (-edge(part + 1)).exp())
    });
    let waits = points(&body.chain([(f64::INFINITY, (-1.0_f64).exp())]).collect::<Vec<_>>());
    let ratio = mean_ratio(Strategy::OptimalOnline, &waits);
    assert!(ratio <= E_RATIO + 1e-9 && ratio > E_RATIO - 0.001, "{ratio}");
    for threshold in [0.0, 50.0, 100.0, 200.0] {
        let cost = expected_cost(&waits, threshold, C).unwrap();
        assert!((cost / C - 1.0).abs() < 0.001, "{threshold}: {cost}");
    }
}

/// Waits of three kinds, not on the steps of any strategy.
fn mixed() -> Distribution {
    points(&[(3.0, 30.0), (21.0, 25.0), (95.0, 10.0), (130.0, 10.0), (260.0, 5.0), (2500.0, 20.0)])
}

/// Runs 400 locks past their beginnings, then for 250 waits each: 100,000 draws. No formula is
/// used.
fn simulate(strategy: Strategy, waits: &Distribution, seed: u64) -> Estimate {
    let mut random = Random::new(seed);
    Estimate::of((0..400).map(|_| {
        let mut lock = Learner::new(strategy, C).unwrap();
        for _ in 0..1000 {
            lock.observe(waits.sample(&mut random)).unwrap();
        }
        let mut sum = 0.0;
        for _ in 0..250 {
            let wait = waits.sample(&mut random);
            sum += cost(lock.threshold(), wait, C).unwrap();
            lock.observe(wait).unwrap();
        }
        sum / 250.0
    }))
}

/// Four standard errors: a sound formula fails once in 16,000 seeds, and the seed is fixed.
#[test]
fn what_is_exact_agrees_with_simulation() {
    let strategies = [
        Strategy::FixedSpin(0.5),
        Strategy::THREE_SAMPLES,
        Strategy::WALK,
        Strategy::RandomWalk { step: 0.25 },
    ];
    for (seed, strategy) in (1..).zip(strategies) {
        let simulated = simulate(strategy, &mixed(), seed);
        let exact = mean(strategy, &mixed());
        assert!(simulated.agrees_with(exact, 4.0), "{strategy}: {exact} and {simulated:?}");
        assert!(simulated.standard_error < 0.01 * exact, "{simulated:?} would agree with anything");
    }
}

#[test]
fn the_randomized_threshold_simulated() {
    let mut random = Random::new(5);
    let waits = mixed();
    let simulated = Estimate::of((0..100_000).map(|_| {
        let threshold = randomized_threshold(random.unit(), C).unwrap();
        cost(threshold, waits.sample(&mut random), C).unwrap()
    }));
    assert!(simulated.agrees_with(mean(Strategy::Randomized, &waits), 4.0), "{simulated:?}");
}

/// With all learned, the approximation spins for the best threshold of the rounded waits, here 192,
/// so that it costs what that does.
#[test]
fn the_approximation_approaches_the_best_threshold_of_rounded_waits() {
    let waits = mixed();
    let rounded =
        points(&[(64.0, 55.0), (128.0, 10.0), (192.0, 10.0), (320.0, 5.0), (1008.0, 20.0)]);
    let (threshold, _) = optimal_threshold(&rounded, C).unwrap();
    let limit = expected_cost(&waits, threshold, C).unwrap();
    let learned = simulate(Strategy::APPROXIMATION, &waits, 11);
    assert!(learned.agrees_with(limit, 4.0), "{learned:?} and {limit}");

    // From the first wait on it costs more, the less the more waits there are.
    let with = |draws| cost_on_distribution(Strategy::APPROXIMATION, &waits, C, draws, 3).unwrap();
    let (few, many) = (with(640), with(640_000));
    assert_eq!((few.runs, many.runs), (RUNS, RUNS));
    assert!(
        few.mean > many.mean && many.mean > limit - 4.0 * many.standard_error,
        "{few:?} {many:?} {limit}"
    );
}

/// More than 256 different waits are simulated. The result agrees with the exact cost of the same
/// waits, some of them thrown together.
#[test]
fn many_different_waits_are_simulated() {
    let waits = Distribution::from_samples(&(1..=600).map(f64::from).collect::<Vec<_>>()).unwrap();
    let fine = Strategy::LastThreeSamples { step: 0.001, cap: 5.04 };
    let coarse = Strategy::LastThreeSamples { step: 0.015, cap: 5.04 };
    let simulated = cost_on_distribution(fine, &waits, C, 320_000, 1).unwrap();
    let exact = cost_on_distribution(coarse, &waits, C, 0, 0).unwrap();
    assert_eq!((simulated.runs, exact.runs), (RUNS, 0));
    // Rounding up by at most 3 spins moves the cost by less than 2 %.
    assert!((simulated.mean / exact.mean - 1.0).abs() < 0.02, "{simulated:?} {exact:?}");
}

#[test]
fn a_seed_fixes_the_answer() {
    let with =
        |seed| cost_on_distribution(Strategy::APPROXIMATION, &mixed(), C, 6400, seed).unwrap();
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn samples_come_as_often_as_their_weight_says() {
    let waits = points(&[(5.0, 1.0), (7.0, 2.0), (f64::INFINITY, 5.0)]);
    let mut random = Random::new(3);
    let drawn: Vec<_> = (0..80_000).map(|_| waits.sample(&mut random)).collect();
    for (length, expected) in [(5.0, 10_000), (7.0, 20_000), (f64::INFINITY, 50_000)] {
        let count: usize = drawn.iter().filter(|&&wait| wait == length).count();
        // The standard deviation is below 140.
        assert!(count.abs_diff(expected) < 5 * 140, "{length}: {count}");
    }
}

/// Spinning for an endless wait costs endlessly much, and only always-spin does it.
#[test]
fn an_endless_wait() {
    let waits = points(&[(10.0, 9.0), (f64::INFINITY, 1.0)]);
    assert_eq!(waits.mean(), f64::INFINITY);
    for strategy in Strategy::ALL {
        let drawn = cost_on_distribution(strategy, &waits, C, 6400, 1).unwrap().mean;
        let traced = cost_on_trace(strategy, &[10.0, f64::INFINITY, 10.0], C).unwrap();
        let endless = strategy == Strategy::AlwaysSpin;
        assert_eq!((drawn.is_infinite(), traced.is_infinite()), (endless, endless), "{strategy}");
        assert!(!drawn.is_nan() && !traced.is_nan());
    }
    assert_eq!(optimal_threshold(&points(&[(f64::INFINITY, 1.0)]), C).unwrap(), (0.0, C));
    // These weights, taken one by one from their sum, leave -1e-16: not a reason to spin for ever.
    let uneven = points(&[(10.0, 0.1), (20.0, 0.3), (f64::INFINITY, 0.9)]);
    let (threshold, cost) = optimal_threshold(&uneven, C).unwrap();
    assert!(
        threshold == 20.0 && close(cost, (1.0 + 6.0 + 0.9 * 220.0) / 1.3),
        "{threshold} {cost}"
    );
}

/// A lock that was free at the first look costs no strategy anything, and no waits at all cost
/// nothing.
#[test]
fn no_wait_costs_nothing() {
    let free = points(&[(0.0, 3.0), (-0.0, 1.0)]);
    assert_eq!(free.points(), [(0.0, 4.0)]);
    for strategy in Strategy::ALL {
        assert_eq!(cost_on_distribution(strategy, &free, C, 64, 0).unwrap().mean, 0.0);
        assert_eq!(cost_on_trace(strategy, &[0.0, 0.0], C).unwrap(), 0.0);
        assert_eq!(cost_on_trace(strategy, &[], C).unwrap(), 0.0);
    }
}

#[test]
fn a_learner_refuses_what_does_not_learn_and_keeps_what_it_knows() {
    for strategy in [Strategy::OptimalOnline, Strategy::Randomized] {
        assert_eq!(Learner::new(strategy, C), Err(CompetitiveError::NotLearned { strategy }));
    }
    let mut lock = Learner::new(Strategy::THREE_SAMPLES, C).unwrap();
    lock.observe(40.0).unwrap();
    let before = lock.clone();
    assert!(lock.observe(f64::NAN).is_err() && lock.observe(-1.0).is_err());
    assert_eq!(lock, before);
}

#[test]
fn what_is_no_number_is_refused_by_name_and_place() {
    let says = |error: CompetitiveError, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let nan = f64::NAN;
    says(Distribution::from_samples(&[]).unwrap_err(), &["no wait"]);
    says(Distribution::from_buckets(&[1.0], &[0]).unwrap_err(), &["no wait"]);
    says(Distribution::from_samples(&[1.0, nan]).unwrap_err(), &["number 1", "NaN"]);
    says(Distribution::from_samples(&[-2.0]).unwrap_err(), &["number 0", "-2"]);
    says(Distribution::from_points(&[(1.0, -3.0)]).unwrap_err(), &["weight number 0", "-3"]);
    says(Distribution::from_points(&[(1.0, nan)]).unwrap_err(), &["weight", "NaN"]);
    says(Distribution::from_points(&[(1.0, f64::INFINITY)]).unwrap_err(), &["weight", "inf"]);
    says(Distribution::from_points(&[(1.0, 9e99), (2.0, 9e99)]).unwrap_err(), &["1e100"]);
    says(Distribution::from_buckets(&[1.0, 2.0], &[1]).unwrap_err(), &["2 buckets", "1 counts"]);
    let waits = mixed();
    for factor in [0.0, -1.0, nan, f64::INFINITY] {
        says(waits.scale(factor).unwrap_err(), &["factor"]);
    }
    assert!(waits.cut_at(nan).is_err());
    for switch in [0.0, -1.0, nan, f64::INFINITY] {
        for strategy in Strategy::ALL {
            says(cost_on_distribution(strategy, &waits, switch, 64, 0).unwrap_err(), &["C = "]);
            says(cost_on_trace(strategy, &[1.0], switch).unwrap_err(), &["C = "]);
        }
        assert!(cost(1.0, 1.0, switch).is_err() && expected_cost(&waits, 1.0, switch).is_err());
        assert!(
            optimal_offline(&waits, switch).is_err() && optimal_threshold(&waits, switch).is_err()
        );
        assert!(
            best_of_three(1.0, 1.0, 1.0, switch).is_err()
                && walk_thresholds(&waits, 1.0, switch).is_err()
        );
        assert!(
            randomized_threshold(0.5, switch).is_err() && randomized_density(0.5, switch).is_err()
        );
        assert!(
            randomized_cost(0.5, switch).is_err()
                && random_walk_step(1.0, 1.0, 1.0, switch).is_err()
        );
        assert!(Learner::new(Strategy::WALK, switch).is_err());
    }
    says(cost(nan, 1.0, C).unwrap_err(), &["threshold = NaN"]);
    says(expected_cost(&waits, -1.0, C).unwrap_err(), &["threshold = -1"]);
    says(cost(1.0, nan, C).unwrap_err(), &["length", "NaN"]);
    says(best_of_three(1.0, 2.0, nan, C).unwrap_err(), &["number 2"]);
    says(cost_on_trace(Strategy::WALK, &[1.0, 2.0, -1.0], C).unwrap_err(), &["number 2", "-1"]);
    says(offline_on_trace(&[1.0, nan], C).unwrap_err(), &["number 1"]);
    for step in [0.0, -1.0, nan, f64::INFINITY] {
        says(random_walk_step(1.0, 1.0, step, C).unwrap_err(), &["step ="]);
        says(walk_thresholds(&waits, step, C).unwrap_err(), &["step ="]);
    }
    says(walk_thresholds(&waits, 1e-9, C).unwrap_err(), &["step", "0.000001"]);
    for uniform in [-0.1, 1.1, nan] {
        says(randomized_threshold(uniform, C).unwrap_err(), &["u ="]);
    }
    says(
        cost_on_distribution(Strategy::APPROXIMATION, &waits, C, LEAST_DRAWS - 1, 0).unwrap_err(),
        &["draws = 63", "approximation", "64"],
    );
}

#[test]
fn a_strategy_out_of_range_is_refused_everywhere() {
    let waits = mixed();
    for strategy in [
        Strategy::FixedSpin(f64::NAN),
        Strategy::FixedSpin(-0.5),
        Strategy::FixedSpin(f64::INFINITY),
        Strategy::RandomWalk { step: 0.0 },
        Strategy::LastThreeSamples { step: 1e-9, cap: 5.0 },
        Strategy::LastThreeSamples { step: 0.1, cap: f64::NAN },
        Strategy::OptimalOnlineApproximation { step: f64::INFINITY, cap: 5.0 },
    ] {
        let refused = |error: CompetitiveError| {
            assert!(matches!(error, CompetitiveError::Parameter { .. }), "{error}");
            assert!(error.to_string().contains("fraction of C from"), "{error}");
        };
        refused(cost_on_distribution(strategy, &waits, C, 64, 0).unwrap_err());
        refused(cost_on_trace(strategy, &[1.0], C).unwrap_err());
        refused(competitive_ratio(strategy).unwrap_err());
        refused(Learner::new(strategy, C).unwrap_err());
    }
}
