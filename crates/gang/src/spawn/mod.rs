//! Gangs as the user spawns them.
//!
//! | file | holds |
//! | --- | --- |
//! | `handle.rs` | the handle of a gang |
//! | `scope.rs` | gangs that borrow |

mod handle;
mod scope;

pub use handle::{GangHandle, ScopedGangHandle};
pub use scope::GangScope;
pub(crate) use scope::run;
