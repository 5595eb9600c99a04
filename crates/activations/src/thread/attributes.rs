//! The attributes of a thread, which do not change once it is spawned.

use super::priority::Priority;

/// The attributes of a thread.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// The name, for reports.
    pub(crate) name: Option<Box<str>>,
    /// True if the thread may continue on another kernel thread after it has waited.
    pub(crate) migrates: bool,
    /// The urgency among ready threads.
    pub(crate) priority: Priority,
}
