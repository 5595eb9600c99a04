//! Control blocks: where they come from, where free ones wait, and what strategies share of it.

pub(crate) mod control_block;
pub(crate) mod free_list;
pub(crate) mod resources;
pub(crate) mod slab;
