//! Feitelson, Rudolph: Gang scheduling performance benefits for fine-grain synchronization, 1992.
//!
//! ```text
//! methods ──┬─ real (this computer; the system's scheduler) ──┐
//!           └─ simulated (Makbilan) ──────────────────────────┴─▶ stage ─▶ fig4 … fig9, with model::gang beside
//! ```
//!
//! [`points`] has what is measured and what the model says of it. The rules by which the figures are judged stand in their files.

mod draw;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig7;
pub(crate) mod fig8;
pub(crate) mod fig9;
mod points;
mod real;
mod simulated;
mod stage;
pub(crate) mod table1;
