//! Feitelson, Rudolph: Gang scheduling performance benefits for fine-grain synchronization, 1992.

mod points;
mod real;
mod simulated;
