//! The threads of a pool: who has one, and those that the program starts.

pub(crate) mod custom;
pub(crate) mod table;
