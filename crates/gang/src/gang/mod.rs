//! The state of a gang while it runs.
//!
//! | file | holds |
//! | --- | --- |
//! | `state.rs` | the state that the members of a gang share |
//! | `completion.rs` | how a gang ends |
//! | `exchange.rs` | the buffers through which members exchange values |

mod completion;
mod exchange;
mod state;

pub use completion::Ending;
pub use exchange::Board;
pub(crate) use state::{Gang, Results, Run, Team, discard, quietly, verdict};
