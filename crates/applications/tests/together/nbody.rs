//! Tests of N-body: forces as by each pair, energy kept, the same bodies in the same positions
//! whatever runs the program, and the errors of options.

use stanchion_applications::nbody::{
    BODIES, Body, Fork, Options, Refused, Sequential, Simulation, plummer,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The other one first.
struct Backwards;

impl Fork for Backwards {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let other = other();
        (one(), other)
    }
}

/// A thread for each fork, as long as there are few.
#[derive(Default)]
struct Threads {
    /// The number of threads that run now.
    now: AtomicUsize,
    /// The number of threads that were started.
    started: AtomicUsize,
}

impl Fork for Threads {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        if self.now.fetch_add(1, Relaxed) >= 6 {
            self.now.fetch_sub(1, Relaxed);
            return (one(), other());
        }
        self.started.fetch_add(1, Relaxed);
        let result = std::thread::scope(|scope| {
            let other = scope.spawn(other);
            (one(), other.join().expect("no panic"))
        });
        self.now.fetch_sub(1, Relaxed);
        result
    }
}

fn cluster(bodies: usize, options: Options) -> Simulation {
    Simulation::new(plummer(bodies, 1), options, &Sequential).expect("good options")
}

#[test]
fn the_outcome_does_not_depend_on_the_pool() {
    fn checksum<F: Fork>(fork: &F) -> (u64, u64, u64) {
        let mut simulation =
            Simulation::new(plummer(5_000, 1), Options::default(), fork).expect("good options");
        (0..3).for_each(|_| simulation.step(fork));
        let energy = simulation.energy(fork).total().to_bits();
        (simulation.checksum(), energy, simulation.spent().interactions)
    }
    let expected = checksum(&Sequential);
    assert_eq!(checksum(&Backwards), expected);
    let threads = Threads::default();
    assert_eq!(checksum(&threads), expected);
    assert!(threads.started.into_inner() > 100, "there was something to share out");
}

/// The values were computed by another program, in another language, with a tree of objects and
/// recursion. They are the same on every computer: only operations that IEEE 754 rounds correctly
/// are computed.
#[test]
fn the_known_checksums() {
    for (bodies, steps, expected, interactions) in
        [(600, 4, 0xca2e_59e1_c98c_34b1, 880_724), (3_000, 3, 0x5399_b189_869e_5d94, 7_859_463)]
    {
        let mut simulation = cluster(bodies, Options::default());
        (0..steps).for_each(|_| simulation.step(&Sequential));
        assert_eq!(simulation.checksum(), expected, "{bodies} bodies");
        assert_eq!(simulation.spent().interactions, interactions);
    }
}

#[test]
fn every_bit_of_the_start_counts() {
    let checksum = |bodies: Vec<Body>| {
        Simulation::new(bodies, Options::default(), &Sequential).expect("good").checksum()
    };
    let bodies = plummer(10, 1);
    let mut other = bodies.clone();
    other[3].speed[1] = f64::from_bits(other[3].speed[1].to_bits() ^ 1);
    assert_ne!(checksum(bodies), checksum(other));
}

#[test]
fn an_angle_of_nothing_is_each_pair_for_itself() {
    let simulation = cluster(700, Options { theta: 0.0, ..Options::default() });
    assert_eq!(simulation.spent().interactions, 700 * 699);
    let error = simulation.accuracy(&Sequential);
    assert!(error.largest < 1e-12, "{error:?}");
    let energy = simulation.energy(&Sequential);
    assert!((energy.total() - error.exact.total()).abs() < 1e-12, "{energy:?} {error:?}");
}

#[test]
fn the_error_is_bounded_by_the_angle() {
    // Errors of the mean; the bounds are some twice the errors found. The largest error is of a
    // body near the centre, where the pulls cancel out.
    let found = [(0.3, 1e-3), (0.5, 4e-3), (0.7, 1e-2), (1.0, 3e-2)].map(|(theta, bound)| {
        let simulation = cluster(2_000, Options { theta, ..Options::default() });
        let error = simulation.accuracy(&Sequential);
        println!("theta {theta}: {error:?} {}", simulation.spent().interactions);
        assert!(error.mean < bound, "theta {theta}: {error:?}");
        assert!(error.largest < 30.0 * bound, "theta {theta}: {error:?}");
        (error.mean, simulation.spent().interactions)
    });
    assert!(found.is_sorted_by(|one, other| one.0 < other.0 && one.1 > other.1), "{found:?}");
    assert!(found[3].1 < 2_000 * 2_000 / 5, "a fifth of the pairs: {}", found[3].1);
}

#[test]
fn energy_is_kept() {
    let mut simulation = cluster(1_000, Options::default());
    let start = simulation.accuracy(&Sequential).exact;
    assert!((start.total() + 0.25).abs() < 0.02, "Hénon's units: {start:?}");
    let mut worst = 0.0_f64;
    for _ in 0..128 {
        simulation.step(&Sequential);
        worst = worst.max(simulation.energy(&Sequential).drift(start).abs());
    }
    let end = simulation.accuracy(&Sequential).exact;
    println!("worst {worst}, exact {}", end.drift(start));
    assert!((simulation.time() - 2.0).abs() < 1e-12);
    assert!(end.drift(start).abs() < 1e-3, "{start:?} {end:?}");
    assert!(worst < 2e-3, "{worst}");
}

/// Two bodies go round each other once, and are where they were.
#[test]
fn a_pair_goes_round() {
    let body = |side: f64| Body {
        mass: 0.5,
        position: [side * 0.5, 0.0, 0.0],
        // With no softening to speak of: the square of the speed is M / 4 r.
        speed: [0.0, side * 0.5, 0.0],
    };
    let steps = 2_000;
    let options = Options {
        dt: 2.0 * std::f64::consts::PI / f64::from(steps),
        softening: 1e-6,
        ..Options::default()
    };
    let mut simulation =
        Simulation::new(vec![body(1.0), body(-1.0)], options, &Sequential).expect("good options");
    for step in 0..steps {
        simulation.step(&Sequential);
        if step + 1 == steps / 2 {
            let position = simulation.bodies()[0].position;
            assert!((position[0] + 0.5).abs() < 1e-5, "half way round: {position:?}");
        }
    }
    for (body, start) in simulation.bodies().iter().zip([0.5, -0.5]) {
        let [x, y, z] = body.position;
        assert!((x - start).abs() < 1e-5 && y.abs() < 1e-4 && z == 0.0, "{body:?}");
    }
}

#[test]
fn bodies_in_one_place_stay_together() {
    let body = Body { mass: 0.1, position: [0.25, -1.0, 3.0], speed: [1.0, 0.0, 0.0] };
    let mut simulation =
        Simulation::new(vec![body; 50], Options::default(), &Sequential).expect("good options");
    (0..64).for_each(|_| simulation.step(&Sequential));
    for body in simulation.bodies() {
        assert_eq!((body.position, body.speed), ([1.25, -1.0, 3.0], [1.0, 0.0, 0.0]));
    }
}

#[test]
fn bodies_without_mass_feel_and_do_not_pull() {
    let mut bodies = vec![Body { mass: 1.0, ..Body::default() }];
    bodies.extend(
        (1..200).map(|number| Body {
            position: [1.0, f64::from(number) / 100.0, 0.0],
            ..Body::default()
        }),
    );
    let mut simulation =
        Simulation::new(bodies, Options::default(), &Sequential).expect("good options");
    simulation.step(&Sequential);
    let bodies = simulation.bodies();
    assert_eq!(bodies[0], Body { mass: 1.0, ..Body::default() });
    assert!(bodies[1..].iter().all(|body| body.speed[0] < 0.0), "towards the mass");
}

#[test]
fn one_body_goes_straight_on() {
    let body = Body { mass: 1.0, position: [0.0; 3], speed: [1.0, 2.0, 3.0] };
    let mut simulation =
        Simulation::new(vec![body], Options { dt: 0.5, ..Options::default() }, &Sequential)
            .expect("good options");
    simulation.step(&Sequential);
    assert_eq!(simulation.bodies()[0].position, [0.5, 1.0, 1.5]);
    assert_eq!(
        (simulation.steps(), simulation.nodes(), simulation.spent().interactions),
        (1, 1, 0)
    );
}

/// As if a task of a pool panicked.
#[test]
fn a_panic_of_a_fork_goes_through() {
    struct Fails(AtomicUsize);

    impl Fork for Fails {
        fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
        where
            A: FnOnce() -> RA + Send,
            B: FnOnce() -> RB + Send,
            RA: Send,
            RB: Send,
        {
            assert!(self.0.fetch_sub(1, Relaxed) != 1, "the last fork");
            (one(), other())
        }
    }

    let mut simulation = cluster(3_000, Options::default());
    for forks in [1, 10, 50, 150] {
        let fork = Fails(AtomicUsize::new(forks));
        let panicked = catch_unwind(AssertUnwindSafe(|| simulation.step(&fork))).is_err();
        assert!(panicked, "a step has more than {forks} forks");
    }
}

#[test]
fn what_is_no_good_is_refused() {
    let refused = |bodies: Vec<Body>, options| {
        Simulation::new(bodies, options, &Sequential).expect_err("no good").to_string()
    };
    let good = Options::default();
    assert_eq!(refused(Vec::new(), good), "0 bodies: must be 1 to 4194304");
    assert_eq!(BODIES, 1..=4_194_304);
    for (theta, shown) in [(-0.1, "-0.1"), (1.01, "1.01"), (f64::NAN, "NaN")] {
        let expected = format!("an opening angle of {shown}: must be 0 to 1");
        assert_eq!(refused(plummer(3, 1), Options { theta, ..good }), expected);
    }
    for dt in [0.0, 1.5, f64::INFINITY, f64::NAN] {
        assert_eq!(
            refused(plummer(3, 1), Options { dt, ..good }),
            format!("a step of {dt}: must be 0.000000001 to 1")
        );
    }
    for softening in [0.0, 2.0, f64::NAN] {
        assert_eq!(
            refused(plummer(3, 1), Options { softening, ..good }),
            format!("a softening of {softening}: must be 0.000001 to 1")
        );
    }
    for (index, number) in [(0, -1.0), (1, f64::NAN), (2, f64::INFINITY), (0, 1e101)] {
        let mut bodies = plummer(3, 1);
        bodies[index].mass = number;
        let found = Simulation::new(bodies, good, &Sequential).expect_err("no good");
        assert_eq!(found, Refused::Body(index));
    }
}
