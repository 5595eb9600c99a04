//! The pull on a body: by each body near it, and by far cubes as if each were a point.
//!
//! A cube has side l. Its centre of mass is at a distance d from the body and at δ from the cube's
//! middle. It is far if `d > l / θ + δ`. Why not `d > l / θ`, as in the paper: if the mass is in a
//! corner, a body beyond the other corner may take its own cube for far, and errors have no bound
//! (Barnes 1994). With δ and θ up to 1 a body is never far from a cube that it is in.
//!
//! Near each other bodies pull less than Newton says: the potential of mass m is
//! `-m / sqrt(d² + ε²)`, Plummer's softening. So no step is too long for a pair that meets, and
//! bodies at one position do not divide by zero.

use super::cache::BLOCK;
use super::tree::{Node, Point};
use crate::body::{Vector, add, dot};

/// The pull of all others on a body.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pull {
    /// Its acceleration.
    pub(super) acceleration: Vector,
    /// Its potential energy for a unit of its mass.
    pub(super) potential: f64,
    /// Bodies and cubes that were added up.
    pub(super) interactions: u32,
}

impl Pull {
    /// Adds the pull of `mass` at `apart` from the body.
    #[inline]
    fn add(&mut self, apart: Vector, square: f64, mass: f64, soft: f64) {
        let square = square + soft;
        let over = 1.0 / square.sqrt();
        let times = mass * over;
        self.potential -= times;
        self.acceleration = add(self.acceleration, apart, times * (over * over));
        self.interactions += 1;
    }
}

/// The pull on the point numbered `me`, by the tree; `soft` is the square of the softening. Blocks
/// of points are touched before they are looked at.
pub(super) fn by_tree(
    nodes: &[Node],
    points: &[Point],
    me: usize,
    soft: f64,
    touch: &mut impl FnMut(usize),
) -> Pull {
    touch(me / BLOCK);
    let position = points[me].position;
    let mut pull = Pull::default();
    let mut next = 0;
    while let Some(node) = nodes.get(next) {
        let apart = add(node.position, position, -1.0);
        let square = dot(apart, apart);
        if square > node.far {
            pull.add(apart, square, node.mass, soft);
            next += node.skip as usize;
        } else if node.count > 0 {
            let first = node.first as usize;
            let points = &points[first..first + node.count as usize];
            (first / BLOCK..=(first + points.len() - 1) / BLOCK).for_each(&mut *touch);
            for (number, point) in (first..).zip(points) {
                if number != me {
                    let apart = add(point.position, position, -1.0);
                    pull.add(apart, dot(apart, apart), point.mass, soft);
                }
            }
            next += 1;
        } else {
            next += 1;
        }
    }
    pull
}

/// The pull on the point numbered `me`, by each other one.
pub(super) fn direct(points: &[Point], me: usize, soft: f64) -> Pull {
    let position = points[me].position;
    let mut pull = Pull::default();
    for (number, point) in points.iter().enumerate() {
        if number != me {
            let apart = add(point.position, position, -1.0);
            pull.add(apart, dot(apart, apart), point.mass, soft);
        }
    }
    pull
}
