//! The timeline: the activity of each thread, its processor and its times.
//!
//! | file | holds |
//! | --- | --- |
//! | `drawing.rs` | [`Drawing`]: a timeline as a picture |
//! | `chrome.rs` | a timeline as a trace for a viewer |
//! | `legend.rs`, `axis.rs`, `text.rs` | parts of the picture: its legend, its time, its letters |
//! | `grid.rs` | the shares of activities in each column of the picture |
//! | `spans.rs` | [`Timeline`]: the spans of a run |
//!
//! Imports go downward in this table.

mod axis;
mod chrome;
mod drawing;
mod grid;
mod legend;
mod spans;
mod text;

pub use drawing::Drawing;
pub use spans::{Rows, Span, Timeline};
