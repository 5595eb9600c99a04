//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod common;
mod galaxy;
mod hanoi;
mod nbody;
mod parallel;
mod quicksort;
mod refused;
mod reprint;
mod tsp;
mod tsplib;
