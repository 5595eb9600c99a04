//! N-body: a cluster of stars under its own gravitation, by the tree of Barnes and Hut, by fork and
//! join.
//!
//! This program has been used to compare schedulers of threads ever since. It has short pieces of
//! work, millions of them, of lengths that are not known before, over data that all threads read.
//! Forces that cost N² by each pair cost N log N, because far groups of bodies are taken for
//! points.
//!
//! | part | content |
//! | --- | --- |
//! | [`Fork`] | the demand on a pool: to do two things at the same time |
//! | [`plummer`](plummer()) | the bodies at the start |
//! | `tree` | cubes in cubes, in an array without pointers |
//! | `force` | the pull on a body |
//! | [`Cache`] | bodies of which not all fit into memory |
//! | [`Simulation`] | the bodies, and a step of theirs |
//!
//! The same bodies come to the same positions, to the last bit, whatever runs the program.
//! [`Simulation`] gives the reason.
//!
//! The application of T. Anderson, B. Bershad, E. Lazowska and H. Levy (*Scheduler activations*,
//! 1992, section 5.3) is one of this kind: a tree of the masses is constructed, and portions of it
//! are traversed for the force on each body; part of its data is in a buffer cache of its own. They
//! do not say how it shared the work out, nor which data is cached. Those parts are additions of
//! this crate.
//!
//! Source: J. Barnes, P. Hut, *A hierarchical O(N log N) force-calculation algorithm*, Nature 324,
//! 1986.

mod cache;
mod force;
mod fork;
mod outcome;
mod plummer;
mod simulation;
mod threads;
mod tree;

pub use crate::body::{Body, Vector};
pub use cache::{BLOCK, Cache, Cached, Disk, MEMORY, Touches};
pub use fork::{Fork, Sequential};
pub use outcome::{BODIES, DT, Energy, ForceError, Options, Refused, SOFTENING, Spent, THETA};
pub use plummer::plummer;
pub use simulation::Simulation;
pub use threads::Threads;
