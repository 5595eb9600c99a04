//! Virtual time, in picoseconds: fine enough for a cycle of any processor, and 213 days long.
//!
//! | file | holds |
//! | --- | --- |
//! | `text.rs` | a time as text, and back |
//! | `moment.rs` | [`Time`] |

mod moment;
mod text;

pub use moment::Time;
pub use text::NotATime;
