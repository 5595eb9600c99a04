//! Random grids: cells that are drawn from distributions.

mod draw;
mod load;
