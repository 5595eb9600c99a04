//! Michael and Scott 1997: the structures of figures 1 to 4, and the programs of figures 5 to 7.

pub mod linked;
pub mod programs;
pub mod rows;
pub mod separate;
pub mod skew;
pub mod tagged;
