//! A point with a mass, and computations on points: shared by [`galaxy`](crate::galaxy) and
//! [`nbody`](crate::nbody).

/// A point or an arrow in space.
pub type Vector = [f64; 3];

/// A mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Body {
    /// Its mass.
    pub mass: f64,
    /// The position.
    pub position: Vector,
    /// The velocity.
    pub speed: Vector,
}

/// `one` plus `times` times `other`.
#[inline]
pub(crate) fn add(one: Vector, other: Vector, times: f64) -> Vector {
    [one[0] + times * other[0], one[1] + times * other[1], one[2] + times * other[2]]
}

#[inline]
pub(crate) fn dot(one: Vector, other: Vector) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}
