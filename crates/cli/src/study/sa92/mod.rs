//! Anderson, Bershad, Lazowska, Levy: Scheduler activations, 1992.
//!
//! ```text
//! setting ──▶ stage ──┬─ real (this computer)                             ──┬─▶ fig2, fig3, table5
//!                     └─ simulated (Firefly), user threads on it: fibers  ──┘
//! ```
//!
//! The rules by which the figures are judged stand in their files.

mod fibers;
pub(crate) mod fig2;
pub(crate) mod fig3;
mod operations;
mod real;
mod setting;
mod simulated;
mod stage;
pub(crate) mod table4;
pub(crate) mod table5;
pub(crate) mod upcall;
mod user;
