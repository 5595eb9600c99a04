use proptest::prelude::*;

use super::phase::{Phase, blocking_above, gang_below, gang_below_among_busy, phase};
use super::simulate::{self, Grain, Others};
use super::*;
use crate::Random;

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * (1.0 + right.abs())
}

fn off(left: f64, right: f64) -> f64 {
    (left / right - 1.0).abs()
}

/// The numbers that the paper prints.
#[test]
fn the_paper_s_own_figures() {
    // "t_w = 0.00058 VAR" is 9/22 of 0.00141.
    assert!((makbilan::iteration(0.0, 1.0).unwrap().waiting() - 0.00058).abs() < 5e-6);
    assert_eq!(makbilan::scheduling(1), 0.07 + 0.14);
    let system = makbilan::system(3).unwrap();
    // Figure 9: 0.3 ms but for (n-1)/n and 1 + 0.004.
    let corner = gang_below(system, 0.0, makbilan::ALPHA, 0.5).unwrap();
    assert!(close(2.0 * corner, 0.3 * 0.9 / 1.004));
    let divide = gang_below(system, 0.0, makbilan::ALPHA, 1.0).unwrap();
    assert!(close(divide, blocking_above(system, 0.0, makbilan::ALPHA, 1.0).unwrap()));
    // "Blocking only has a decided advantage when t_w is larger than t_p by 0.6 ms": a line of
    // slope nearly 1.
    let line = |processing| blocking_above(system, processing, makbilan::ALPHA, 0.5).unwrap();
    assert!((line(1.0) - line(0.0) - 1.0).abs() < 0.01 && off(line(0.0), 0.6) < 0.11);
}

#[test]
fn what_is_not_one_is_refused() {
    assert!(matches!(System::new(0.0, 0.1, 1, 1), Err(GangError::Time { what: "quantum", .. })));
    assert!(matches!(System::new(1.0, -0.1, 1, 1), Err(GangError::Time { what: "switch", .. })));
    assert_eq!(System::new(1.0, 0.1, 0, 1), Err(GangError::None { what: "load" }));
    assert_eq!(System::new(1.0, 0.1, 1, 0), Err(GangError::None { what: "members" }));
    assert!(matches!(Iteration::new(f64::NAN, 0.0), Err(GangError::Time { .. })));
    assert_eq!(Iteration::of::<[f64; 0]>(&[]), Err(GangError::None { what: "threads" }));
    let ragged = Iteration::of(&[vec![1.0], vec![1.0, 2.0]]);
    assert_eq!(ragged, Err(GangError::Ragged { thread: 1, iterations: 2, expected: 1 }));
    let system = makbilan::system(2).unwrap();
    let iteration = Iteration::new(1.0, 1.0).unwrap();
    assert_eq!(system.blocking(iteration, -1.0), Err(GangError::Alpha { value: -1.0 }));
    assert!(matches!(gang_below(system, 1.0, 1.0, 0.0), Err(GangError::Sigma { .. })));
    assert!(matches!(phase(system, iteration, 1.0, 1.1), Err(GangError::Sigma { .. })));
    let nothing = Grain { least: 0.0, spread: 0.0 };
    assert!(simulate::gang(system, nothing, 1, 1, &mut Random::new(0)).is_err());
}

/// Drawn times give what `uniform` computes.
#[test]
fn uniform_times_wait_as_long_as_drawn_ones() {
    let mut random = Random::new(1992);
    for members in [1, 2, 10] {
        let mut times = || (0..20_000).map(|_| 2.0 + 3.0 * random.unit()).collect::<Vec<_>>();
        let drawn: Vec<_> = (0..members).map(|_| times()).collect();
        let drawn = Iteration::of(&drawn).unwrap();
        let expected = Iteration::uniform(2.0, 3.0, members).unwrap();
        assert!(off(drawn.processing(), expected.processing()) < 0.01, "{members}: {drawn:?}");
        assert!((drawn.waiting() - expected.waiting()).abs() < 0.03, "{members}: {drawn:?}");
    }
}

/// Segments thrown onto a loop overlap for λⁿ/Λⁿ⁻¹, measured by points thrown after them.
#[test]
fn segments_overlap_as_computed() {
    let mut random = Random::new(7);
    for (length, count) in [(0.5, 2), (0.9, 2), (0.5, 3), (0.7, 5)] {
        let draws = 200_000;
        let hit = |random: &mut Random| {
            let point = random.unit();
            (0..count).all(|_| (point - random.unit()).rem_euclid(1.0) < length)
        };
        let hits = (0..draws).filter(|_| hit(&mut random)).count() as f64;
        let (seen, expected) = (hits / f64::from(draws), overlap(length, 1.0, count));
        let error = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
        assert!((seen - expected).abs() < 4.0 * error, "{length} {count}: {seen}, {expected}");
    }
}

#[test]
fn gangs_take_what_equation_6_says() {
    let mut random = Random::new(1);
    for (load, spread) in [(1, 0.0), (3, 0.1), (3, 1.0), (5, 20.0)] {
        let system = System::new(50.0, if load == 1 { 0.0 } else { 0.2 }, load, 10).unwrap();
        let grain = Grain { least: 0.2, spread };
        let seen = simulate::gang(system, grain, 20_000, 4, &mut random).unwrap();
        let expected = system.gang(grain.iteration(10).unwrap());
        // A thread that computes for a moment only can end as its quantum does. The remainder of
        // the quantum waits for no other thread.
        assert!(off(seen.mean, expected) < 0.01, "{load} {spread}: {seen:?}, {expected}");
    }
}

/// Equation 8 where the overlap holds many iterations, its bound where it holds none, and finding 2
/// between them.
#[test]
fn uncoordinated_threads_take_what_equation_8_says() {
    let mut random = Random::new(2);
    let mut at = |least: f64, load, members| {
        let system = System::new(50.0, 0.2, load, members).unwrap();
        let grain = Grain { least, spread: least };
        let rate = simulate::uncoordinated(system, grain, 3_000, 300, &mut random).unwrap();
        let iteration = grain.iteration(members).unwrap();
        let both = 1.0 / system.uncoordinated_unbounded(iteration) + 1.0 / system.round();
        let rounds = system.uncoordinated(iteration) * rate.mean;
        (rounds, rate.mean / both)
    };
    // How many times as fast as the equation says, and as the sum of both parts.
    let (fine, _) = at(0.1, 2, 2);
    assert!((0.85..1.2).contains(&fine), "{fine}");
    let (fine, _) = at(0.1, 4, 2);
    assert!((0.85..1.25).contains(&fine), "{fine}");
    let (crossing, sum) = at(0.2, 4, 4);
    assert!(crossing > 1.5 && (1.0..1.6).contains(&sum), "{crossing} {sum}");
    let (bound, _) = at(0.3, 4, 10);
    assert!((1.0..2.0).contains(&bound), "{bound}");
}

/// Equation 12 where another thread is ready; below it where not (finding 3).
#[test]
fn blocking_threads_take_what_equations_12_and_13_say() {
    let mut random = Random::new(3);
    let mut at = |least, spread, load, others| {
        let system = System::new(50.0, 0.2, load, 10).unwrap();
        let grain = Grain { least, spread };
        let seen =
            simulate::blocking(system, grain, 1.5, others, 1_500, 3, &mut random).unwrap().mean;
        let iteration = grain.iteration(10).unwrap();
        match others {
            Others::Alike => seen / system.blocking(iteration, 1.5).unwrap(),
            Others::Busy => seen / system.blocking_among_busy(iteration, 1.5).unwrap(),
        }
    };
    let many = at(0.3, 0.3, 8, Others::Alike);
    assert!((0.9..1.2).contains(&many), "{many}");
    let alone = at(1.0, 1.0, 1, Others::Alike);
    assert!(alone > 1.1, "no other thread is ready: {alone}");
    for load in [2, 4] {
        let busy = at(1.4, 1.4, load, Others::Busy);
        assert!((0.6..1.4).contains(&busy), "{load}: {busy}");
    }
}

/// Returns the point where `above(x)` turns true, by halving.
fn root(mut low: f64, mut high: f64, above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if above(middle) { high = middle } else { low = middle }
    }
    low
}

fn systems() -> impl Strategy<Value = System> {
    (1.0..100.0, 0.0..1.0, 1_u32..8, 2_u32..20).prop_map(|(quantum, switch, load, members)| {
        System::new(quantum, switch, load, members).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Conditions 15 to 17 are where the equations they come from cross.
    #[test]
    fn conditions_are_where_times_cross(
        system in systems(), processing in 0.0..10.0, alpha in 0.0..5.0, sigma in 0.05..1.0_f64,
    ) {
        let gang = |wait| system.gang(Iteration::new(processing, wait).unwrap());
        let still = Iteration::new(processing, 0.0).unwrap();
        let (blocking, among) =
            (system.blocking(still, alpha).unwrap(), system.blocking_among_busy(still, alpha).unwrap());
        // t_w does not enter blocking's time.
        for (line, limit) in [
            (gang_below(system, processing, alpha, sigma).unwrap(), sigma * blocking),
            (blocking_above(system, processing, alpha, sigma).unwrap(), blocking / sigma),
            (gang_below_among_busy(system, processing, alpha, sigma).unwrap(), sigma * among),
        ] {
            if line < 0.0 {
                prop_assert!(gang(0.0) > limit * (1.0 - 1e-9));
            } else {
                let crossed = root(0.0, 1e5, |wait| gang(wait) > limit);
                prop_assert!((line - crossed).abs() < 1e-6 * (1.0 + crossed), "{line} {crossed}");
            }
        }
    }

    /// With one program all that waits busily takes the same; without switches the fine and the
    /// coarse of blocking do.
    #[test]
    fn limits(system in systems(), processing in 0.001..10.0, wait in 0.0..10.0, alpha in 0.0..5.0) {
        let iteration = Iteration::new(processing, wait).unwrap();
        let free = System::new(system.quantum(), 0.0, system.load(), system.members()).unwrap();
        prop_assert!(close(free.blocking(iteration, alpha).unwrap(), free.blocking_coarse(iteration)));
        let alone = System::new(system.quantum(), 0.0, 1, system.members()).unwrap();
        prop_assert!(close(alone.gang(iteration), iteration.full()));
        prop_assert!(close(alone.uncoordinated_unbounded(iteration), iteration.full()));
        prop_assert!(close(alone.blocking_among_busy(iteration, alpha).unwrap(), processing));
        // A thread that always has company is a gang.
        let one = System::new(system.quantum(), system.switch(), system.load(), 1).unwrap();
        prop_assert!(close(one.uncoordinated_unbounded(iteration), one.gang(iteration)));
    }

    /// More load, longer waits and dearer switches make nothing faster, and gangs are never behind
    /// those without.
    #[test]
    fn monotone(system in systems(), processing in 0.001..10.0, wait in 0.0..10.0, alpha in 0.0..5.0) {
        let iteration = Iteration::new(processing, wait).unwrap();
        let all = |system: System, iteration| [
            system.gang(iteration),
            system.uncoordinated(iteration),
            system.uncoordinated_unbounded(iteration),
            system.blocking_coarse(iteration),
            system.blocking(iteration, alpha).unwrap(),
            system.blocking_among_busy(iteration, alpha).unwrap(),
        ];
        let (quantum, switch) = (system.quantum(), system.switch());
        let more = System::new(quantum, switch, system.load() + 1, system.members()).unwrap();
        let dearer = System::new(quantum, switch + 0.1, system.load(), system.members()).unwrap();
        let longer = Iteration::new(processing, wait + 1.0).unwrap();
        for worse in [all(more, iteration), all(dearer, iteration), all(system, longer)] {
            for (worse, now) in worse.into_iter().zip(all(system, iteration)) {
                prop_assert!(worse >= now * (1.0 - 1e-12), "{worse} < {now}");
            }
        }
        let [gang, bounded, unbounded, ..] = all(system, iteration);
        prop_assert!(gang <= unbounded * (1.0 + 1e-12));
        prop_assert!(bounded <= system.round() * (1.0 + 1e-12));
    }

    /// No point is in both corners, and a gang's corner ends where its condition says.
    #[test]
    fn phases_agree_with_times(system in systems(), processing in 0.0..2.0, wait in 0.0..2.0, sigma in 0.05..0.99_f64) {
        let iteration = Iteration::new(processing, wait).unwrap();
        let (gang, blocking) = (system.gang(iteration), system.blocking(iteration, 1.5).unwrap());
        match phase(system, iteration, 1.5, sigma).unwrap() {
            Phase::Gang => prop_assert!(gang <= sigma * blocking * (1.0 + 1e-9)),
            Phase::Blocking => prop_assert!(blocking <= sigma * gang * (1.0 + 1e-9)),
            Phase::Even => {
                prop_assert!(gang >= sigma * blocking * (1.0 - 1e-9));
                prop_assert!(blocking >= sigma * gang * (1.0 - 1e-9));
            }
        }
    }
}
