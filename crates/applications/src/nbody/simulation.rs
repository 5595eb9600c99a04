//! The bodies and a step of theirs.
//!
//! Leapfrog, in the form kick, drift, kick. Between the kicks are these parts, each by fork and
//! join:
//!
//! | part | action | work |
//! | --- | --- | --- |
//! | bounds | the cube around all bodies | N |
//! | keys, sort, gather | brings the bodies into the order of Morton | N log N |
//! | tree | [`tree`] | N |
//! | forces | [`force`]: nearly all of the time | N log N, for a given opening angle |
//!
//! In the order of Morton, neighbours in space are neighbours in memory.
//!
//! # Invariants
//!
//! 1. Between steps `bodies` and `points` are in the order of Morton of the moment, and `nodes` is
//!    the tree of `points`.
//! 2. A key comes with the position of its body in the step before. So no two are equal, and the
//!    order depends on the bodies only.
//! 3. All sums are made in an order that depends on the bodies only ([`fork`](super::fork),
//!    invariant 4 of [`tree`]).
//!
//! So a step has the same outcome to the last bit whatever pool runs it, on however many threads.

use super::force::{self, Pull};
use super::fork::{Fork, each, fold, portions, sort};
use super::outcome::{BODIES, Energy, ForceError, Options, Refused, Spent};
use super::tree::{self, Cube, Node, Point};
use crate::body::{Body, Vector, add, dot};
use crate::mix::mix;
use crate::pace::Pace;
use stanchion_machine::clock;

/// Bodies that are moved, measured or brought to their positions at once.
const GRAIN: usize = 512;

/// Instructions of an interaction: some twenty operations on numbers with a fraction, one of them a
/// root and one a division.
const INTERACTION: u64 = 60;

/// Instructions for a body apart from what pulls it: two kicks, a drift, its key, its part in
/// sorting.
const BODY: u64 = 300;

/// A body, its number, and the pull on it.
#[derive(Clone, Copy, Debug, Default)]
struct Felt {
    /// The body.
    body: Body,
    /// The number that the caller gave it.
    number: u32,
    /// The pull at its position.
    pull: Pull,
}

/// Bodies that pull each other.
///
/// ```
/// use stanchion_applications::nbody::{Options, Sequential, Simulation, plummer};
///
/// let mut cluster = Simulation::new(plummer(500, 1), Options::default(), &Sequential)?;
/// let start = cluster.energy(&Sequential);
/// for _ in 0..64 {
///     cluster.step(&Sequential);
/// }
/// assert!(cluster.energy(&Sequential).drift(start).abs() < 1e-3);
/// # Ok::<(), stanchion_applications::nbody::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The options.
    options: Options,
    /// The bodies, in the order of Morton (Invariant 1).
    bodies: Vec<Felt>,
    /// The positions and masses of the bodies, for the tree.
    points: Vec<Point>,
    /// The tree of the points.
    nodes: Vec<Node>,
    /// Reused from step to step.
    keys: Vec<(u64, u32)>,
    /// Room for the sort of the keys.
    spare_keys: Vec<(u64, u32)>,
    /// Room for the bodies in their next order.
    spare_bodies: Vec<Felt>,
    /// The number of steps made.
    steps: u64,
    /// The cost so far.
    spent: Spent,
}

impl Simulation {
    /// Returns a simulation of the bodies at the start. Computes the first forces.
    ///
    /// # Errors
    ///
    /// [`Refused`] names the option that is no good, and what would be.
    pub fn new<F: Fork>(bodies: Vec<Body>, options: Options, fork: &F) -> Result<Self, Refused> {
        options.check()?;
        if !BODIES.contains(&bodies.len()) {
            return Err(Refused::Bodies(bodies.len()));
        }
        let good = |body: &Body| {
            let mut numbers = body.position.iter().chain(&body.speed).chain([&body.mass]);
            body.mass >= 0.0 && numbers.all(|number| number.abs() <= 1e100)
        };
        if let Some(bad) = bodies.iter().position(|body| !good(body)) {
            return Err(Refused::Body(bad));
        }
        let number = bodies.len();
        let bodies =
            (0..).zip(bodies).map(|(number, body)| Felt { body, number, ..Felt::default() });
        let mut simulation = Self {
            options,
            bodies: bodies.collect(),
            points: vec![Point::default(); number],
            nodes: Vec::new(),
            keys: vec![(0, 0); number],
            spare_keys: vec![(0, 0); number],
            spare_bodies: vec![Felt::default(); number],
            steps: 0,
            spent: Spent::default(),
        };
        fork.enter(|| simulation.pull(fork));
        Ok(simulation)
    }

    /// Lets a step pass. If `fork` panics, bodies have moved and bodies have not: what comes of
    /// further steps is worth nothing.
    pub fn step<F: Fork>(&mut self, fork: &F) {
        fork.enter(|| self.leap(fork));
        self.steps += 1;
    }

    fn leap<F: Fork>(&mut self, fork: &F) {
        let dt = self.options.dt;
        each(fork, &mut self.bodies, GRAIN, &|_, Felt { body, pull, .. }| {
            body.speed = add(body.speed, pull.acceleration, 0.5 * dt);
            body.position = add(body.position, body.speed, dt);
        });
        self.pull(fork);
        each(fork, &mut self.bodies, GRAIN, &|_, Felt { body, pull, .. }| {
            body.speed = add(body.speed, pull.acceleration, 0.5 * dt);
        });
    }

    /// Brings the bodies in order, builds the tree, and computes what each feels.
    fn pull<F: Fork>(&mut self, fork: &F) {
        let Options { theta, softening, instruction_ns, grain, .. } = self.options;
        let pace = Pace::new(instruction_ns);
        let began = clock::now();
        let cube = self.bounds(fork);
        let bodies = &self.bodies;
        each(fork, &mut self.keys, GRAIN, &|index, key| {
            pace.compute(BODY);
            *key = (cube.key(bodies[index].body.position), index as u32);
        });
        self.reorder(fork);
        self.nodes = tree::build(fork, cube, &self.keys, &self.points, theta);
        let built = clock::now();
        let (nodes, points) = (&self.nodes, &self.points);
        let soft = softening * softening;
        portions(fork, 0, &mut self.bodies, grain.max(1), &|first, portion| {
            let mut touch = fork.toucher();
            for (index, felt) in (first..).zip(portion) {
                felt.pull = force::by_tree(nodes, points, index, soft, &mut touch);
                pace.compute(INTERACTION * u64::from(felt.pull.interactions));
                stanchion_machine::write(felt);
            }
        });
        self.spent.tree_ns += built.nanos_since(began);
        self.spent.force_ns += clock::now().nanos_since(built);
        let of = |felt: &Felt| u64::from(felt.pull.interactions);
        self.spent.interactions +=
            fold(fork, &self.bodies, GRAIN, &of, &|one, other| one + other).unwrap_or(0);
    }

    /// Sorts the keys, and brings the bodies and points into their order.
    fn reorder<F: Fork>(&mut self, fork: &F) {
        sort(fork, &mut self.keys, &mut self.spare_keys);
        let (keys, bodies) = (&self.keys, &self.bodies);
        each(fork, &mut self.spare_bodies, GRAIN, &|index, felt| {
            *felt = bodies[keys[index].1 as usize];
        });
        core::mem::swap(&mut self.bodies, &mut self.spare_bodies);
        let bodies = &self.bodies;
        each(fork, &mut self.points, GRAIN, &|index, point| {
            let Body { position, mass, .. } = bodies[index].body;
            *point = Point { position, mass };
        });
    }

    /// The cube around all bodies.
    fn bounds<F: Fork>(&self, fork: &F) -> Cube {
        let of = |felt: &Felt| (felt.body.position, felt.body.position);
        let both = |one: (Vector, Vector), other: (Vector, Vector)| {
            let low = core::array::from_fn(|axis| one.0[axis].min(other.0[axis]));
            let high = core::array::from_fn(|axis| one.1[axis].max(other.1[axis]));
            (low, high)
        };
        let (low, high) = fold(fork, &self.bodies, GRAIN, &of, &both).unwrap_or_default();
        Cube::around(low, high)
    }

    /// Steps made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Time that has passed.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.steps as f64 * self.options.dt
    }

    /// Returns the cost so far, with the forces at the start.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Nodes of the tree.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the positions of the bodies, in an unspecified order.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = Vector> + '_ {
        self.points.iter().map(|point| point.position)
    }

    /// The bodies, in the order in which they were given.
    #[must_use]
    pub fn bodies(&self) -> Vec<Body> {
        let mut bodies = vec![Body::default(); self.bodies.len()];
        for felt in &self.bodies {
            bodies[felt.number as usize] = felt.body;
        }
        bodies
    }

    /// Returns the energy, as far as the tree knows the potential: [`accuracy`](Self::accuracy)
    /// returns how far that is.
    #[must_use]
    pub fn energy<F: Fork>(&self, fork: &F) -> Energy {
        fork.enter(|| energy(fork, &self.bodies))
    }

    /// Of positions and speeds of all bodies, bit for bit.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        let of = |felt: &Felt| {
            let Body { position, speed, .. } = felt.body;
            let numbers = position.into_iter().chain(speed);
            numbers.fold(mix(felt.number.into()), |sum, number| mix(sum ^ number.to_bits()))
        };
        self.bodies.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// Compares the forces of the moment with those by each body for itself. Takes time that grows
    /// with the square of the number of bodies.
    #[must_use]
    pub fn accuracy<F: Fork>(&self, fork: &F) -> ForceError {
        fork.enter(|| self.compare(fork))
    }

    fn compare<F: Fork>(&self, fork: &F) -> ForceError {
        let soft = self.options.softening * self.options.softening;
        let mut exact: Vec<(Felt, f64)> = self.bodies.iter().map(|felt| (*felt, 0.0)).collect();
        each(fork, &mut exact, self.options.grain.max(1), &|index, (felt, error)| {
            let pull = force::direct(&self.points, index, soft);
            let off = add(felt.pull.acceleration, pull.acceleration, -1.0);
            let size = dot(pull.acceleration, pull.acceleration);
            // A body that is not pulled at all is pulled right.
            *error = if size > 0.0 { dot(off, off) / size } else { dot(off, off) };
            felt.pull = pull;
        });
        let both = |one: (f64, f64), other: (f64, f64)| (one.0 + other.0, one.1.max(other.1));
        let (sum, largest) =
            fold(fork, &exact, GRAIN, &|exact| (exact.1, exact.1), &both).unwrap_or_default();
        let exact: Vec<Felt> = exact.into_iter().map(|exact| exact.0).collect();
        ForceError {
            mean: (sum / exact.len() as f64).sqrt(),
            largest: largest.sqrt(),
            exact: energy(fork, &exact),
        }
    }
}

/// The energy of bodies that feel these pulls. A pair's is in the potential of both.
fn energy<F: Fork>(fork: &F, bodies: &[Felt]) -> Energy {
    let of = |Felt { body, pull, .. }: &Felt| Energy {
        kinetic: 0.5 * body.mass * dot(body.speed, body.speed),
        potential: 0.5 * body.mass * pull.potential,
    };
    let both = |one: Energy, other: Energy| Energy {
        kinetic: one.kinetic + other.kinetic,
        potential: one.potential + other.potential,
    };
    fold(fork, bodies, GRAIN, &of, &both).unwrap_or_default()
}
