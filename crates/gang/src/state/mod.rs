//! The state of a gang while it runs, which its members share.
//!
//! | file | holds |
//! | --- | --- |
//! | `gang_state.rs` | [`GangState`]: all of it, and the count of members that run |
//! | `completion.rs` | [`Completion`]: the gang's barrier, and its end |
//! | `exchange.rs` | [`ExchangeBuffers`]: the buffers through which members exchange values |
//!
//! Imports go downward in this table. Nothing here knows the executor or a thread of it.

mod completion;
mod exchange;
mod gang_state;

pub use completion::Completion;
pub use exchange::ExchangeBuffers;
pub(crate) use gang_state::GangState;
