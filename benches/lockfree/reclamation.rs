//! Ways to know when a node may be freed: a Treiber stack over each.

use crate::contest::Family;

/// All of them.
pub(crate) fn family() -> Family {
    Family::new("reclamation")
}
