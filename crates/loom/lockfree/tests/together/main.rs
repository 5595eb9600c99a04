//! The models of this twin, in one program: linking each file by itself takes longer.

mod blocking;
mod counters;
mod heaps;
mod herlihy;
mod litmus;
mod memory;
mod once;
mod queues;
mod rings;
mod stacks;
