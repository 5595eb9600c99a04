//! Runs with the arena as the program's allocator, in one program: linking each by itself takes
//! longer.

use stanchion_simulator::Arena;

#[global_allocator]
static ARENA: Arena = Arena;

mod activations;
#[path = "../common/mod.rs"]
mod common;
mod delays;
mod failures;
mod freeze;
mod fuzz;
mod gang;
mod keep;
mod words;
