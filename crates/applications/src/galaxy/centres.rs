//! The two masses: a near-collision of two points, integrated by leapfrog.
//!
//! The gravitational constant and the first mass are 1. The second passes it on a parabola. The
//! point nearest to the first is at distance [`NEAREST`]. Both move about their common centre of
//! mass, which rests in the origin. No sine, cosine or power is computed anywhere in this program.
//! It computes only operations that IEEE 754 rounds correctly (`+ - * /` and the square root), so
//! the numbers are the same on every computer.
//!
//! Leapfrog, in the form kick, drift, kick: half a step of acceleration, a step of motion, half a
//! step of acceleration. It is of second order, can be run backwards, and keeps the angular
//! momentum up to rounding.

use crate::body::{Body, Vector, add, dot};

/// Time that passes in a step. The innermost stars of the first centre go round in 132 of them.
pub const STEP: f64 = 1.0 / 128.0;

/// Distance of the centres where they are nearest, had they no stars and time no steps.
pub const NEAREST: f64 = 1.0;

/// Their distance at the start.
const START: f64 = 6.0;

/// Two masses and nothing else: stars have none.
///
/// ```
/// use stanchion_applications::galaxy::{Encounter, STEP};
/// let mut encounter = Encounter::new(0.5);
/// let start = encounter.energy();
/// for _ in 0..1_500 {
///     encounter.advance(STEP);
/// }
/// assert!((encounter.energy() - start).abs() < 1e-3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encounter {
    /// The first mass is 1.
    pub bodies: [Body; 2],
}

impl Encounter {
    /// The start, with a second mass of `ratio`.
    #[must_use]
    pub fn new(ratio: f64) -> Self {
        let total = 1.0 + ratio;
        // A parabola: the energy is 0, and the angular momentum, for a unit of reduced mass, is
        // sqrt(2 G M q).
        let speed = (2.0 * total / START).sqrt();
        let across = (2.0 * total * NEAREST).sqrt() / START;
        let towards = (speed * speed - across * across).sqrt();
        let body = |mass, share: f64| Body {
            mass,
            position: [share * START, 0.0, 0.0],
            speed: [-share * towards, share * across, 0.0],
        };
        Self { bodies: [body(1.0, -ratio / total), body(ratio, 1.0 / total)] }
    }

    /// Lets `time` pass.
    pub fn advance(&mut self, time: f64) {
        self.kick(0.5 * time);
        for body in &mut self.bodies {
            body.position = add(body.position, body.speed, time);
        }
        self.kick(0.5 * time);
    }

    fn kick(&mut self, time: f64) {
        let [one, two] = &mut self.bodies;
        let apart = add(two.position, one.position, -1.0);
        let square = dot(apart, apart);
        let pull = 1.0 / (square * square.sqrt());
        one.speed = add(one.speed, apart, time * pull * two.mass);
        two.speed = add(two.speed, apart, -time * pull * one.mass);
    }

    /// Returns the positions of the masses.
    #[must_use]
    pub fn positions(&self) -> [Vector; 2] {
        self.bodies.map(|body| body.position)
    }

    /// Their distance.
    #[must_use]
    pub fn distance(&self) -> f64 {
        let apart = add(self.bodies[1].position, self.bodies[0].position, -1.0);
        dot(apart, apart).sqrt()
    }

    /// Kinetic and potential energy together: 0 on a parabola.
    #[must_use]
    pub fn energy(&self) -> f64 {
        let [one, two] = &self.bodies;
        let kinetic = |body: &Body| 0.5 * body.mass * dot(body.speed, body.speed);
        kinetic(one) + kinetic(two) - one.mass * two.mass / self.distance()
    }

    /// Angular momentum about the origin.
    #[must_use]
    pub fn angular_momentum(&self) -> Vector {
        let of = |Body { mass, position: [x, y, z], speed: [u, v, w] }: Body| {
            [mass * (y * w - z * v), mass * (z * u - x * w), mass * (x * v - y * u)]
        };
        add(of(self.bodies[0]), of(self.bodies[1]), 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest change of the energy and of the angular momentum, and the least distance, over the
    /// whole encounter.
    fn watched(ratio: f64, step: f64) -> (f64, f64, f64) {
        let mut encounter = Encounter::new(ratio);
        let (energy, momentum) = (encounter.energy(), encounter.angular_momentum());
        let (mut drift, mut turn, mut nearest) = (0.0_f64, 0.0_f64, f64::MAX);
        for _ in 0..(20.0 / step) as u32 {
            encounter.advance(step);
            drift = drift.max((encounter.energy() - energy).abs());
            let change = add(encounter.angular_momentum(), momentum, -1.0);
            turn = turn.max(dot(change, change).sqrt());
            nearest = nearest.min(encounter.distance());
        }
        (drift, turn, nearest)
    }

    #[test]
    fn energy_and_angular_momentum_are_kept() {
        for ratio in [1.0, 0.5, 0.1] {
            assert!(Encounter::new(ratio).energy().abs() < 1e-15, "a parabola");
            let (drift, turn, nearest) = watched(ratio, STEP);
            // The kinetic energy at the nearest point is `ratio`.
            assert!(drift < 1e-4 * ratio, "{drift}");
            assert!(turn < 1e-13, "{turn}");
            assert!((nearest - NEAREST).abs() < 1e-3, "{nearest}");
        }
    }

    #[test]
    fn the_error_is_of_second_order() {
        let error = |step| watched(1.0, step).0;
        let order = error(2.0 * STEP) / error(STEP);
        assert!(
            (3.8..4.2).contains(&order),
            "half the step, a quarter of the error, not 1/{order}"
        );
    }

    #[test]
    fn it_can_be_run_backwards() {
        let start = Encounter::new(0.7);
        let mut encounter = start;
        let mut run = |sign: f64| {
            for _ in 0..2_000 {
                encounter.advance(sign * STEP);
            }
            encounter
        };
        assert!((run(1.0).distance() - start.distance()).abs() > 1.0);
        assert!(run(-1.0).distance() - start.distance() < 1e-11);
    }

    #[test]
    fn the_centre_of_mass_rests() {
        let mut encounter = Encounter::new(0.3);
        for _ in 0..2_000 {
            encounter.advance(STEP);
        }
        let [one, two] = encounter.bodies;
        let centre = add(one.position, two.position, two.mass);
        assert!(dot(centre, centre).sqrt() < 1e-12, "{centre:?}");
    }
}
