//! The tree: cubes in cubes, each with the mass of the bodies in it and its centre of mass.
//!
//! ```text
//! points, in the order of Morton:  a b c | d e | f | g h i j | k
//! nodes, each before its children: [a-k  [a-e  [abc] [de]]  [f]  [ghij]  [k]]
//! ```
//!
//! A node is followed by its first child. The node that comes after it and its descendants is
//! `skip` nodes further on: 3 for a-e, 1 for a leaf. So a walk needs no stack and no pointers.
//! Trees of neighbours are built at the same time by different threads. They become the tree of all
//! when they are written one after another: nothing in them depends on its position.
//!
//! Why not the tree of the paper, into which bodies are put one by one: that is one thread's work,
//! or needs locks. The tree that results does not depend on the order, so nothing is gained by it.
//! Why not keep the tree from step to step: it is built in a fiftieth of the time that the forces
//! take (`cargo run --release -p examples --example nbody` prints both).
//!
//! # Invariants
//!
//! 1. The points are sorted by key, so the bodies of a cube lie next to each other, and those of
//!    its eighths too, in the order of their numbers.
//! 2. A cube in which only one eighth has bodies is not in the tree: that eighth stands for it. A
//!    node has at least two children, or is a leaf.
//! 3. A leaf has at most [`LEAF`] bodies, or is as small as a key can tell.
//! 4. The index of a node depends on the keys only. Its mass and centre are sums in the order of
//!    points or children. So the tree is the same to the last bit whichever threads built it.
//!
//! Source: J. Barnes, P. Hut, *A hierarchical O(N log N) force-calculation algorithm*, Nature 324,
//! 1986. Sorted keys: M. Warren, J. Salmon, *A parallel hashed oct-tree N-body algorithm*, 1993.

use super::fork::Fork;
use crate::body::{Vector, add, dot};

/// The most bodies of a leaf. Fewer would make more nodes to walk over, more would make more pulls.
pub(super) const LEAF: usize = 8;

/// Halvings of the cube that a key tells apart, in each direction.
const LEVELS: u32 = 21;

/// The number of bodies that one thread builds a tree of without a fork.
const GRAIN: usize = 1_024;

/// A point that pulls: a mass at a position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    /// The position.
    pub(super) position: Vector,
    /// The mass.
    pub(super) mass: f64,
}

/// The cube that holds all bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cube {
    /// The corner with the smallest coordinates.
    corner: Vector,
    /// The length of a side.
    side: f64,
}

impl Cube {
    /// Around two opposite corners of a box.
    pub(super) fn around(low: Vector, high: Vector) -> Self {
        let side = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
        // All at one position: any cube will do.
        Self { corner: low, side: if side > 0.0 { side } else { 1.0 } }
    }

    /// The key of a position: the bits of its three coordinates, in turn.
    pub(super) fn key(&self, position: Vector) -> u64 {
        let cells = f64::from(1 << LEVELS);
        let bits = |axis: usize| {
            let cell = (position[axis] - self.corner[axis]) / self.side * cells;
            // The far side belongs to the last cell.
            spread((cell as u64).min((1 << LEVELS) - 1))
        };
        bits(0) << 2 | bits(1) << 1 | bits(2)
    }
}

/// Two zeros before each of 21 bits.
fn spread(bits: u64) -> u64 {
    let mut bits = bits & 0x1f_ffff;
    for (shift, mask) in [
        (32, 0x1f_0000_0000_ffff),
        (16, 0x1f_0000_ff00_00ff),
        (8, 0x100f_00f0_0f00_f00f),
        (4, 0x10c3_0c30_c30c_30c3),
        (2, 0x1249_2492_4924_9249),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// A cube with bodies in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    /// The centre of its mass.
    pub(super) position: Vector,
    /// The mass of the bodies in it.
    pub(super) mass: f64,
    /// Square of the distance from which on it pulls like a point.
    pub(super) far: f64,
    /// Nodes of it and all below.
    pub(super) skip: u32,
    /// Of a leaf, its first point; else 0.
    pub(super) first: u32,
    /// Of a leaf, its points; else 0.
    pub(super) count: u32,
}

/// Builds the tree of points that are sorted by key; none of none.
pub(super) fn build<F: Fork>(
    fork: &F,
    cube: Cube,
    keys: &[(u64, u32)],
    points: &[Point],
    theta: f64,
) -> Vec<Node> {
    if points.is_empty() {
        return Vec::new();
    }
    Builder { fork, cube, keys, points, theta }.tree(0, points.len(), 0)
}

struct Builder<'a, F> {
    /// The runtime that forks.
    fork: &'a F,
    /// The cube around all points.
    cube: Cube,
    /// The sorted keys, with the numbers of the points.
    keys: &'a [(u64, u32)],
    /// The points, in the order of the keys.
    points: &'a [Point],
    /// The opening angle.
    theta: f64,
}

/// Points from a first one to before a last one, that share an eighth; most of eight are none.
type Eighths = [(usize, usize); 8];

impl<F: Fork> Builder<'_, F> {
    /// The tree of the points from `low` to before `high`, at least one, that share `level` bits in
    /// each direction.
    fn tree(&self, low: usize, high: usize, level: u32) -> Vec<Node> {
        if high - low <= GRAIN {
            let mut nodes = Vec::with_capacity((high - low) / 2 + 1);
            self.grow(low, high, level, &mut nodes);
            return nodes;
        }
        let Some((eighths, level)) = self.divide(low, high, level) else {
            let mut nodes = Vec::new();
            self.leaf(low, high, level, &mut nodes);
            return nodes;
        };
        let trees = self.trees(&eighths, level + 1);
        let mut nodes = Vec::with_capacity(1 + trees.iter().map(Vec::len).sum::<usize>());
        nodes.push(Node::EMPTY);
        trees.into_iter().for_each(|tree| nodes.extend(tree));
        self.finish(0, low, level, &mut nodes);
        nodes
    }

    /// The trees of those eighths that have points, in their order.
    fn trees(&self, eighths: &[(usize, usize)], level: u32) -> Vec<Vec<Node>> {
        match eighths {
            [] => Vec::new(),
            [(low, high)] if low == high => Vec::new(),
            [(low, high)] => vec![self.tree(*low, *high, level)],
            eighths => {
                let (one, other) = eighths.split_at(eighths.len() / 2);
                let (mut one, other) =
                    self.fork.join(|| self.trees(one, level), || self.trees(other, level));
                one.extend(other);
                one
            }
        }
    }

    /// Does the same as [`tree`](Self::tree) without forks, at the end of `nodes`.
    fn grow(&self, low: usize, high: usize, level: u32, nodes: &mut Vec<Node>) {
        let divided = if high - low <= LEAF { None } else { self.divide(low, high, level) };
        let Some((eighths, level)) = divided else {
            return self.leaf(low, high, level, nodes);
        };
        let index = nodes.len();
        nodes.push(Node::EMPTY);
        for (low, high) in eighths {
            if low < high {
                self.grow(low, high, level + 1, nodes);
            }
        }
        self.finish(index, low, level, nodes);
    }

    /// The eighths of the smallest cube with all these points, and its level; none if they have one
    /// key.
    fn divide(&self, low: usize, high: usize, mut level: u32) -> Option<(Eighths, u32)> {
        let keys = &self.keys[low..high];
        // By invariant 1 the first and the last differ if any two do, and where they differ first
        // they part.
        let differ = keys[0].0 ^ keys[keys.len() - 1].0;
        while eighth(differ, level)? == 0 {
            level += 1;
        }
        let mut eighths = [(low, low); 8];
        let mut from = 0;
        for (number, bounds) in eighths.iter_mut().enumerate() {
            let rest = &keys[from..];
            let until =
                from + rest.partition_point(|key| eighth(key.0, level) <= Some(number as u64));
            *bounds = (low + from, low + until);
            from = until;
        }
        Some((eighths, level))
    }

    fn leaf(&self, low: usize, high: usize, level: u32, nodes: &mut Vec<Node>) {
        let mut node =
            Node { skip: 1, first: low as u32, count: (high - low) as u32, ..Node::EMPTY };
        let points = self.points[low..high].iter();
        self.weigh(&mut node, points.map(|point| (point.position, point.mass)), low, level);
        nodes.push(node);
    }

    /// Fills in the node at `index`. Its children are the nodes behind it.
    fn finish(&self, index: usize, low: usize, level: u32, nodes: &mut [Node]) {
        let (node, below) = nodes[index..].split_first_mut().expect("the node is there");
        let mut next = 0;
        let children = core::iter::from_fn(|| {
            let child = below.get(next)?;
            next += child.skip as usize;
            Some((child.position, child.mass))
        });
        self.weigh(node, children, low, level);
        node.skip = 1 + below.len() as u32;
    }

    /// Mass, centre and distance of a node of `level` in which the point `low` is.
    fn weigh(
        &self,
        node: &mut Node,
        parts: impl Iterator<Item = (Vector, f64)>,
        low: usize,
        level: u32,
    ) {
        let mut sum = [0.0; 3];
        for (position, mass) in parts {
            sum = add(sum, position, mass);
            node.mass += mass;
        }
        // Without mass there is nothing that pulls, from wherever.
        node.position = if node.mass > 0.0 {
            sum.map(|along| along / node.mass)
        } else {
            self.points[low].position
        };
        let side = self.cube.side / f64::from(1 << level);
        // The centre of the cube, from a position in it: the corner is at a whole number of sides
        // from that of the first cube.
        let position = self.points[low].position;
        let middle: Vector = core::array::from_fn(|axis| {
            let cell = ((position[axis] - self.cube.corner[axis]) / side).floor();
            let cell = cell.clamp(0.0, f64::from(1 << level) - 1.0);
            self.cube.corner[axis] + (cell + 0.5) * side
        });
        let off = add(node.position, middle, -1.0);
        let far = side / self.theta + dot(off, off).sqrt();
        node.far = far * far;
    }
}

/// Returns the eighth of a cube of `level` that a key is in, or `None` below the last level.
fn eighth(key: u64, level: u32) -> Option<u64> {
    let left = LEVELS.checked_sub(level + 1)?;
    Some(key >> (3 * left) & 7)
}

impl Node {
    const EMPTY: Self =
        Self { position: [0.0; 3], mass: 0.0, far: 0.0, skip: 0, first: 0, count: 0 };
}

#[cfg(test)]
mod tests {
    use super::super::fork::Sequential;
    use super::*;
    use proptest::prelude::*;

    /// The tree of these positions, each of mass 1, and its points.
    fn tree_of(positions: &[Vector], theta: f64) -> (Vec<Node>, Vec<Point>) {
        let mut low = [f64::MAX; 3];
        let mut high = [f64::MIN; 3];
        for position in positions {
            for axis in 0..3 {
                low[axis] = low[axis].min(position[axis]);
                high[axis] = high[axis].max(position[axis]);
            }
        }
        let cube = Cube::around(low, high);
        let mut keys: Vec<(u64, u32)> =
            (0..).zip(positions).map(|(number, position)| (cube.key(*position), number)).collect();
        keys.sort_unstable();
        let points: Vec<Point> = keys
            .iter()
            .map(|key| Point { position: positions[key.1 as usize], mass: 1.0 })
            .collect();
        (build(&Sequential, cube, &keys, &points, theta), points)
    }

    /// Checks a node and all below it, and returns the points that its leaves have.
    fn check(nodes: &[Node], points: &[Point]) -> core::ops::Range<usize> {
        let (node, below) = nodes.split_first().expect("a node");
        assert_eq!(node.skip as usize, nodes.len());
        let range = if below.is_empty() {
            let first = node.first as usize;
            first..first + node.count as usize
        } else {
            assert_eq!(node.count, 0);
            let (mut next, mut children) = (0, 0);
            let mut range: Option<core::ops::Range<usize>> = None;
            while next < below.len() {
                let child = check(&below[next..next + below[next].skip as usize], points);
                let first = range.get_or_insert(child.start..child.start);
                assert_eq!(first.end, child.start, "no point is left out, none is twice");
                first.end = child.end;
                next += below[next].skip as usize;
                children += 1;
            }
            assert!((2..=8).contains(&children), "{children} children");
            range.expect("children")
        };
        assert_eq!(node.mass, range.len() as f64);
        for axis in 0..3 {
            let mean = points[range.clone()].iter().map(|point| point.position[axis]).sum::<f64>()
                / range.len() as f64;
            assert!((node.position[axis] - mean).abs() < 1e-9, "{} {mean}", node.position[axis]);
        }
        // What is inside is never far.
        for point in &points[range.clone()] {
            let apart = add(point.position, node.position, -1.0);
            assert!(dot(apart, apart) <= node.far, "{point:?} in {node:?}");
        }
        range
    }

    fn coordinate() -> impl Strategy<Value = f64> {
        prop_oneof![-1.0..1.0_f64, prop::sample::select(vec![0.0, 0.5, -0.5, 1e-9, 0.25])]
    }

    proptest! {
        #[test]
        fn every_body_is_in_one_leaf(positions in prop::collection::vec([coordinate(), coordinate(), coordinate()], 1..200), theta in 0.0..=1.0_f64) {
            let (nodes, points) = tree_of(&positions, theta);
            prop_assert_eq!(check(&nodes, &points), 0..positions.len());
            let big = |node: &Node| node.count as usize > LEAF;
            prop_assert!(nodes.iter().filter(|node| big(node)).all(|node| {
                let first = points[node.first as usize].position;
                let apart = |point: &Point| add(point.position, first, -1.0);
                let mut points = points[node.first as usize..][..node.count as usize].iter();
                points.all(|point| dot(apart(point), apart(point)) < 1e-10)
            }), "only bodies that no key tells apart share a large leaf");
        }
    }

    #[test]
    fn bodies_in_one_place_are_one_leaf() {
        let (nodes, points) = tree_of(&[[0.25; 3]; 3_000], 0.5);
        assert_eq!(nodes.len(), 1);
        assert_eq!(check(&nodes, &points), 0..3_000);
    }

    #[test]
    fn large_trees_are_put_together() {
        let positions: Vec<Vector> =
            super::super::plummer(20_000, 1).iter().map(|body| body.position).collect();
        let (nodes, points) = tree_of(&positions, 0.5);
        assert_eq!(check(&nodes, &points), 0..20_000);
    }

    #[test]
    fn keys_take_the_bits_in_turn() {
        let cube = Cube::around([0.0; 3], [1.0, 0.5, 0.1]);
        assert_eq!(cube.key([0.0; 3]), 0);
        assert_eq!(cube.key([1.0; 3]), (1 << 63) - 1);
        assert_eq!(cube.key([0.5, 0.0, 0.0]), 0b100 << 60);
        assert_eq!(cube.key([0.0, 0.25, 0.5]), 0b001_010 << 57);
        for bits in [0, 1, 0x15_5555, 0x1f_ffff, 0x12_3456] {
            let slow = (0..21).map(|bit| (bits >> bit & 1) << (3 * bit)).sum::<u64>();
            assert_eq!(spread(bits), slow);
        }
    }

    #[test]
    fn nothing_has_no_tree() {
        let cube = Cube::around([0.0; 3], [1.0; 3]);
        assert!(build(&Sequential, cube, &[], &[], 0.5).is_empty());
    }
}
