//! Galaxy: a near-collision of two galaxies, computed and shown by several threads.
//!
//! One of the programs that Karlin, Li, Manasse and Owicki used to compare strategies of spinning,
//! by their lock-waiting times. The paper says of it:
//!
//! > Galaxy is a parallel program that simulates near-collisions of two galaxies on the Firefly
//! > display. Physically, the mass of each galaxy is considered to be located at a point at its
//! > center, and the "stars" that surround the galaxy are taken to be of zero mass. Thus
//! > acceleration depends only on the relative position of the two centers.
//!
//! and that it has 13 locks, and that most waits are short. Pool, chunks and bands are additions of
//! this crate:
//!
//! | part | content |
//! | --- | --- |
//! | [`Encounter`] | the two masses |
//! | `stars` | the stars that they pull about |
//! | `pool` | the stars that are to be advanced |
//! | `display` | the number of stars that each cell shows |
//! | [`sequential`] | the reference, without threads or locks |
//!
//! The idea of stars without mass is older: A. Toomre, J. Toomre, *Galactic bridges and tails*,
//! Astrophysical Journal 178, 1972.
//!
//! Source: A. Karlin, K. Li, M. Manasse, S. Owicki, *Empirical studies of competitive spinning for
//! a shared-memory multiprocessor*, 1991, section 3.

mod centres;
mod display;
mod outcome;
mod pool;
pub mod sequential;
mod simulate;
mod stars;

pub use crate::body::{Body, Vector};
pub use crate::crew::MAX_THREADS;
pub use centres::{Encounter, NEAREST, STEP};
pub use display::{BANDS, HEIGHT, WIDTH};
pub use outcome::{Fault, Options, Refused, Run, STARS, Share};
pub use simulate::{Scene, run, run_with};
