//! Stacks of the real machine: on a Unix system, with guards made by its memory protection.

mod alternate;
mod line;
mod memory;
mod once;
mod overflow;
mod refusal;
mod table;

pub(crate) use self::{
    memory::{Memory, guards, half_is_used, page},
    overflow::{Watched, watch},
};
