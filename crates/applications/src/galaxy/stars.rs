//! The stars: points without mass that are pulled about by two masses.
//!
//! They start on circles around one of the centres. Those of the first are in the plane in which
//! the centres move, those of the second in a plane tilted by the smaller angle of a 3-4-5
//! triangle. As in the paper, *acceleration depends only on the relative position of the two
//! centers*: a star knows nothing of other stars. So it does not matter which thread advances it,
//! nor when within a step.

use super::centres::{Encounter, STEP};
use super::display::{self, Change};
use crate::body::{Vector, add, dot};
use crate::mix::mix;

/// Stars on the least and the greatest circle, around a centre of mass 1.
const RADII: (f64, f64) = (0.3, 1.0);

/// Square of the length below which the pull of a centre gets weaker again, lest a star that comes
/// too near be flung out of the world.
const SOFT: f64 = 0.05 * 0.05;

/// A star.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Star {
    /// The position.
    position: Vector,
    /// The velocity.
    speed: Vector,
    /// The acceleration at this position.
    pull: Vector,
    /// The cell in which the display shows it.
    cell: Option<u32>,
}

/// Neighbours by number, which are advanced together.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Number of the first star.
    pub(super) first: u64,
    /// The stars of the chunk, advanced by one thread.
    pub(super) stars: Vec<Star>,
}

/// All stars at the start: those of the two centres, as many as their masses have a claim to.
pub(super) fn stars(
    number: usize,
    seed: u64,
    encounter: &Encounter,
) -> impl Iterator<Item = Star> + '_ {
    let [one, two] = encounter.bodies;
    let first = (number as f64 * (one.mass / (one.mass + two.mass))).round() as usize;
    (0..number).map(move |index| {
        let galaxy = usize::from(index >= first);
        Star::new(index as u64, seed, encounter, galaxy)
    })
}

impl Star {
    fn new(number: u64, seed: u64, encounter: &Encounter, galaxy: usize) -> Self {
        let centre = encounter.bodies[galaxy];
        let (x, y) = ring(number, seed);
        let size = centre.mass.sqrt();
        let unit = (x * x + y * y).sqrt();
        let radius = size * unit;
        let speed = (centre.mass * radius * radius * softened(radius * radius)).sqrt();
        let tilt = |[x, y, z]: Vector| if galaxy == 0 { [x, y, z] } else { [x, 0.8 * y, 0.6 * y] };
        let position = add(centre.position, tilt([x, y, 0.0]), size);
        let speed = add(centre.speed, tilt([-y, x, 0.0]), speed / unit);
        let mut star = Self { position, speed, pull: [0.0; 3], cell: display::cell(position) };
        star.pull = star.pulled(encounter.positions(), encounter.bodies.map(|body| body.mass));
        star
    }

    /// Advances the star by a step, with the centres at `centres` at its end. Returns the change of
    /// the display.
    #[inline]
    pub(super) fn advance(
        &mut self,
        centres: [Vector; 2],
        masses: [f64; 2],
        mut change: impl FnMut(Change),
    ) {
        self.speed = add(self.speed, self.pull, 0.5 * STEP);
        self.position = add(self.position, self.speed, STEP);
        self.pull = self.pulled(centres, masses);
        self.speed = add(self.speed, self.pull, 0.5 * STEP);
        let cell = display::cell(self.position);
        let before = core::mem::replace(&mut self.cell, cell);
        if before != cell {
            before
                .map(Change::Leaves)
                .into_iter()
                .chain(cell.map(Change::Comes))
                .for_each(&mut change);
        }
    }

    #[inline]
    fn pulled(&self, centres: [Vector; 2], masses: [f64; 2]) -> Vector {
        let mut pull = [0.0; 3];
        for (centre, mass) in centres.into_iter().zip(masses) {
            let apart = add(centre, self.position, -1.0);
            pull = add(pull, apart, mass * softened(dot(apart, apart)));
        }
        pull
    }

    /// Returns the cell in which the display shows it.
    pub(super) fn cell(&self) -> Option<u32> {
        self.cell
    }

    /// Returns the part of star `number` in the checksum. Sums wrap.
    pub(super) fn contribution(&self, number: u64) -> u64 {
        let numbers = self.position.iter().chain(&self.speed);
        numbers.fold(mix(number), |sum, number| mix(sum ^ number.to_bits()))
    }
}

/// One over the cube of a distance, softened.
#[inline]
fn softened(square: f64) -> f64 {
    let square = square + SOFT;
    1.0 / (square * square.sqrt())
}

/// A point between two circles, as likely here as there.
fn ring(number: u64, seed: u64) -> (f64, f64) {
    // 53 bits, from -1 to 1.
    let coordinate = |bits: u64| (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    let mut bits = mix(mix(seed).wrapping_add(number));
    loop {
        let (x, y) = (coordinate(bits), coordinate(mix(bits)));
        let square = x * x + y * y;
        if (RADII.0 * RADII.0..=RADII.1 * RADII.1).contains(&square) {
            return (x, y);
        }
        // Seven of ten points lie between: soon over.
        bits = mix(bits ^ number.rotate_left(32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_of_a_lone_centre_stay_on_their_circles() {
        // The second has no mass, so the first rests.
        let mut encounter = Encounter::new(0.0);
        let masses = encounter.bodies.map(|body| body.mass);
        let mut stars: Vec<Star> = stars(200, 3, &encounter).collect();
        let radius = |star: &Star| dot(star.position, star.position).sqrt();
        let start: Vec<f64> = stars.iter().map(radius).collect();
        assert!(start.iter().all(|&radius| (0.3..=1.0).contains(&radius)));
        assert!(
            start.iter().any(|&radius| radius < 0.5) && start.iter().any(|&radius| radius > 0.9)
        );
        let mut travelled = 0.0;
        for _ in 0..2_000 {
            encounter.advance(STEP);
            for (star, start) in stars.iter_mut().zip(&start) {
                star.advance(encounter.positions(), masses, |_| ());
                assert!((radius(star) / start - 1.0).abs() < 2e-3, "{} from {start}", radius(star));
            }
            travelled += dot(stars[0].speed, stars[0].speed).sqrt() * STEP;
        }
        assert!(travelled > 10.0, "round and round: {travelled}");
    }

    #[test]
    fn a_star_goes_back_the_way_it_came() {
        let encounter = Encounter::new(1.0);
        let masses = encounter.bodies.map(|body| body.mass);
        let mut star = stars(10, 1, &encounter).nth(7).expect("ten stars");
        let start = star.position;
        let mut course = vec![encounter];
        for step in 0..1_000 {
            let mut next = course[step];
            next.advance(STEP);
            course.push(next);
            star.advance(next.positions(), masses, |_| ());
        }
        assert!(add(star.position, start, -1.0).iter().any(|way| way.abs() > 1.0));
        star.speed = star.speed.map(|speed| -speed);
        for step in (0..1_000).rev() {
            star.advance(course[step].positions(), masses, |_| ());
        }
        let miss = add(star.position, start, -1.0);
        assert!(dot(miss, miss).sqrt() < 1e-6, "{miss:?}");
    }

    #[test]
    fn stars_are_shared_out_by_mass_and_by_seed() {
        let encounter = Encounter::new(0.5);
        let all: Vec<Star> = stars(900, 1, &encounter).collect();
        let of_first = |star: &&Star| star.position[0] < 0.0;
        assert_eq!(all.iter().filter(of_first).count(), 600);
        assert_eq!(all, stars(900, 1, &encounter).collect::<Vec<_>>());
        assert_ne!(all, stars(900, 2, &encounter).collect::<Vec<_>>());
    }

    #[test]
    fn every_bit_counts() {
        let encounter = Encounter::new(0.5);
        let star = stars(1, 1, &encounter).next().expect("a star");
        let sum = star.contribution(0);
        for index in 0..6 {
            let mut other = star;
            let number =
                if index < 3 { &mut other.position[index] } else { &mut other.speed[index - 3] };
            *number = f64::from_bits(number.to_bits() ^ 1);
            assert_ne!(other.contribution(0), sum, "number {index}");
        }
        assert_ne!(star.contribution(1), sum);
    }
}
