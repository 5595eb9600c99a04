//! Shared ownership, checked for leaks under loom.

pub use crate::backend::sync::Arc;
