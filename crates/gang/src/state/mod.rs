//! The state of a gang while it runs.
//!
//! | file | holds |
//! | --- | --- |
//! | `state.rs` | the state that the members of a gang share |
//! | `completion.rs` | how a gang ends |
//! | `exchange.rs` | the buffers through which members exchange values |

mod completion;
mod exchange;
mod gang_state;

pub use completion::Completion;
pub use exchange::ExchangeBuffers;
pub(crate) use gang_state::{
    Gang, GangState, JoinableGang, SpawnedGang, drop_payload, ignoring_panics, join_result,
};
