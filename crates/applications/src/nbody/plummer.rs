//! The first positions and velocities: Plummer's model of a star cluster, in equilibrium.
//!
//! Units are Hénon's: the mass of all and the constant of gravitation are 1, the energy is -1/4.
//! The length of the model is then 3π/16, and half of the mass is within 0.77.
//!
//! Why not the recipe as published: it computes powers, a sine and a cosine, which differ from
//! computer to computer in the last bit. Here only operations that IEEE 754 rounds correctly are
//! computed (`+ - * /` and the square root), so the bodies are the same everywhere.
//!
//! - A radius r, where `(r² / (1 + r²))^(3/2)` is uniform. As published: a power. Here: the
//!   greatest of three uniform numbers is `sqrt(r² / (1 + r²))`.
//! - A direction. As published: sine and cosine. Here: a point in the ball, from the cube by
//!   rejection.
//! - A speed, as a part q of that of escape, with density `q² (1 - q²)^(7/2)`. As published:
//!   rejection. Here: the same.
//!
//! A radius outside of which is less than a thousandth of the mass is drawn again, as is customary:
//! a few far bodies would make the tree deep for nothing.
//!
//! Source: S. Aarseth, M. Hénon, R. Wielen, *A comparison of numerical methods for the study of
//! star cluster dynamics*, Astronomy and Astrophysics 37, 1974, appendix. The units: D. Heggie, R.
//! Mathieu, *Standardised units and time scales*, 1986.

use crate::body::{Body, Vector, add, dot};
use crate::mix::mix;
use core::f64::consts::PI;

/// The greatest `sqrt(r² / (1 + r²))`: its cube is 0.999 of the mass.
const OUTERMOST: f64 = 0.999_666_555;

/// More than the greatest value of `q² (1 - q²)^(7/2)`, which is 0.092 at q² = 2/9.
const DENSEST: f64 = 0.1;

/// Returns `number` bodies of equal mass. Their common centre rests in the origin.
///
/// ```
/// let bodies = stanchion_applications::nbody::plummer(1_000, 1);
/// assert!(bodies.iter().all(|body| body.mass == 0.001));
/// ```
#[must_use]
pub fn plummer(number: usize, seed: u64) -> Vec<Body> {
    let mass = 1.0 / number as f64;
    let length = 3.0 * PI / 16.0;
    let mut bodies: Vec<Body> = (0..number as u64)
        .map(|which| {
            let Body { position, speed, .. } = draw(&mut Uniform::new(seed, which));
            let speed = speed.map(|along| along / length.sqrt());
            Body { mass, position: position.map(|along| along * length), speed }
        })
        .collect();
    let mean = |of: fn(&Body) -> Vector| {
        let sum = bodies.iter().map(of).fold([0.0; 3], |sum, one| add(sum, one, 1.0));
        sum.map(|along| along * mass)
    };
    let (position, speed) = (mean(|body| body.position), mean(|body| body.speed));
    for body in &mut bodies {
        body.position = add(body.position, position, -1.0);
        body.speed = add(body.speed, speed, -1.0);
    }
    bodies
}

/// Returns a body of the model of length 1.
fn draw(uniform: &mut Uniform) -> Body {
    let part = loop {
        let part = uniform.next().max(uniform.next()).max(uniform.next());
        if part <= OUTERMOST {
            break part;
        }
    };
    let radius = part / (1.0 - part * part).sqrt();
    let escape = (2.0 / (1.0 + radius * radius).sqrt()).sqrt();
    let speed = loop {
        let (part, level) = (uniform.next(), uniform.next());
        let left = 1.0 - part * part;
        if DENSEST * level < part * part * left * left * left * left.sqrt() {
            break part * escape;
        }
    };
    Body { mass: 1.0, position: direction(uniform, radius), speed: direction(uniform, speed) }
}

/// An arrow of this length that may point anywhere.
fn direction(uniform: &mut Uniform, length: f64) -> Vector {
    loop {
        let point = [(); 3].map(|()| 2.0 * uniform.next() - 1.0);
        let square = dot(point, point);
        // Half of the points of the cube are within the ball. Near the centre directions are
        // coarse.
        if (1e-6..=1.0).contains(&square) {
            return point.map(|along| along * (length / square.sqrt()));
        }
    }
}

/// Numbers from 0 to 1, without 1, for one body. The draws for one body do not matter to another.
struct Uniform(u64);

impl Uniform {
    fn new(seed: u64, body: u64) -> Self {
        Self(mix(mix(seed).wrapping_add(body)))
    }

    fn next(&mut self) -> f64 {
        // SplitMix64 from a state of its own: the increment is within `mix`.
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_plummer_s() {
        let bodies = plummer(40_000, 3);
        let part = |radius: f64| {
            let within =
                bodies.iter().filter(|body| dot(body.position, body.position) < radius * radius);
            within.count() as f64 / bodies.len() as f64
        };
        let length = 3.0 * PI / 16.0;
        for times in [0.2, 0.5, 1.0, 1.3, 2.0, 5.0] {
            let square: f64 = times * times;
            // Of all mass 0.999 is there.
            let expected = (square / (1.0 + square)).powf(1.5) / 0.999;
            let found = part(times * length);
            assert!((found - expected).abs() < 0.01, "{found} within {times}, not {expected}");
        }
        let kinetic: f64 =
            bodies.iter().map(|body| 0.5 * body.mass * dot(body.speed, body.speed)).sum();
        assert!((kinetic - 0.25).abs() < 0.005, "equilibrium: {kinetic}");
    }

    #[test]
    fn the_centre_rests() {
        let bodies = plummer(1_000, 1);
        for axis in 0..3 {
            let position: f64 = bodies.iter().map(|body| body.position[axis]).sum();
            let speed: f64 = bodies.iter().map(|body| body.speed[axis]).sum();
            assert!(position.abs() < 1e-11 && speed.abs() < 1e-11, "{position} {speed}");
        }
    }

    #[test]
    fn no_side_is_preferred() {
        let bodies = plummer(20_000, 2);
        for axis in 0..3 {
            let right = bodies.iter().filter(|body| body.position[axis] > 0.0).count();
            let away = bodies.iter().filter(|body| body.speed[axis] > 0.0).count();
            assert!(right.abs_diff(10_000) < 400 && away.abs_diff(10_000) < 400, "{right} {away}");
        }
        // Positions and speeds have nothing to do with each other.
        let outwards = bodies.iter().filter(|body| dot(body.position, body.speed) > 0.0).count();
        assert!(outwards.abs_diff(10_000) < 400, "{outwards}");
    }

    #[test]
    fn seeds_differ_and_bodies_too() {
        let bodies = plummer(50, 1);
        assert_eq!(bodies, plummer(50, 1));
        assert_ne!(bodies, plummer(50, 2));
        assert!((1..50).all(|other| bodies[0].position != bodies[other].position));
    }
}
