//! The models of this twin, in one program: linking each file by itself takes longer.

mod biased;
mod forks;
mod futures;
mod parts;
mod pool;
mod sleeping;
mod strategies;
mod termination;
