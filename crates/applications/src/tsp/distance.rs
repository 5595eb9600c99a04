//! Distances from coordinates, rounded as TSPLIB rounds them.
//!
//! Why the rounding is copied to the letter: an optimum is known for whole distances that were made
//! in exactly this way.
//!
//! Source: G. Reinelt, *TSPLIB 95*, section 2; for degrees of `GEO` the correction in TSPLIB's list
//! of questions: they are cut off, not rounded.

/// The way from coordinates to distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// Rounded to the nearest.
    Euclidean,
    /// Rounded up.
    Ceiling,
    /// Degrees and minutes, as in `DDD.MM`, on a sphere.
    Geographical,
    /// A tenth of the square, rounded up in a way of its own.
    Att,
}

/// Of the earth, in kilometres, by TSPLIB.
const RADIUS: f64 = 6_378.388;

/// TSPLIB's: more digits would make other distances.
#[expect(clippy::approx_constant)]
const PI: f64 = 3.141592;

impl Metric {
    /// From `a` to `b`; `None` if that is more than 32 bits hold.
    pub(super) fn distance(self, a: (f64, f64), b: (f64, f64)) -> Option<u32> {
        let (x, y) = (a.0 - b.0, a.1 - b.1);
        let distance = match self {
            Self::Euclidean => (x * x + y * y).sqrt().round(),
            Self::Ceiling => (x * x + y * y).sqrt().ceil(),
            Self::Geographical => geographical(a, b),
            Self::Att => {
                let exact = ((x * x + y * y) / 10.0).sqrt();
                let rounded = exact.round();
                if rounded < exact { rounded + 1.0 } else { rounded }
            }
        };
        (distance <= f64::from(u32::MAX)).then_some(distance as u32)
    }
}

fn geographical(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (latitude_a, longitude_a) = (radians(a.0), radians(a.1));
    let (latitude_b, longitude_b) = (radians(b.0), radians(b.1));
    let q1 = (longitude_a - longitude_b).cos();
    let q2 = (latitude_a - latitude_b).cos();
    let q3 = (latitude_a + latitude_b).cos();
    // The argument may be a little more than 1 for two cities at one point.
    let angle = (0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)).min(1.0).acos();
    (RADIUS * angle + 1.0).trunc()
}

fn radians(coordinate: f64) -> f64 {
    let degrees = coordinate.trunc();
    let minutes = coordinate - degrees;
    PI * (degrees + 5.0 * minutes / 3.0) / 180.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding() {
        let origin = (0.0, 0.0);
        // The root of 2 is 1.41, of 3.25 is 1.80; half a unit goes up.
        assert_eq!(Metric::Euclidean.distance(origin, (1.0, 1.0)), Some(1));
        assert_eq!(Metric::Euclidean.distance(origin, (1.0, 1.5)), Some(2));
        assert_eq!(Metric::Euclidean.distance(origin, (0.0, 2.5)), Some(3));
        assert_eq!(Metric::Euclidean.distance(origin, (-3.0, 4.0)), Some(5));
        assert_eq!(Metric::Ceiling.distance(origin, (1.0, 1.0)), Some(2));
        assert_eq!(Metric::Ceiling.distance(origin, (3.0, 4.0)), Some(5));
        // The root of 100 / 10 is 3.16: rounded it would be 3. That of 160 / 10 is 4; of 250 / 10
        // is 5; of 130 / 10 is 3.61.
        assert_eq!(Metric::Att.distance(origin, (10.0, 0.0)), Some(4));
        assert_eq!(Metric::Att.distance(origin, (12.0, 4.0)), Some(4));
        assert_eq!(Metric::Att.distance(origin, (15.0, 5.0)), Some(5));
        assert_eq!(Metric::Att.distance(origin, (9.0, 7.0)), Some(4));
        assert_eq!(Metric::Euclidean.distance(origin, (5e9, 0.0)), None);
        assert_eq!(Metric::Euclidean.distance((1e200, 0.0), (-1e200, 0.0)), None);
    }

    /// A quarter of the way round is 6378.388 * pi / 2 = 10019.15 km, and TSPLIB cuts off after
    /// adding 1.
    #[test]
    fn on_the_sphere() {
        let pole = (90.0, 0.0);
        assert_eq!(Metric::Geographical.distance((0.0, 0.0), (0.0, 90.0)), Some(10_020));
        assert_eq!(Metric::Geographical.distance(pole, (0.0, 17.0)), Some(10_020));
        assert_eq!(Metric::Geographical.distance(pole, pole), Some(1));
        // Half a degree is written .30, and is 55.66 km of a meridian; so south of the equator,
        // where degrees are cut off towards 0.
        assert_eq!(Metric::Geographical.distance((0.0, 5.0), (0.30, 5.0)), Some(56));
        assert_eq!(Metric::Geographical.distance((0.0, 5.0), (-0.30, 5.0)), Some(56));
        assert_eq!(Metric::Geographical.distance((-0.30, 5.0), (0.30, 5.0)), Some(112));
    }
}
