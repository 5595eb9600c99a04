//! The study: experiments as values, and the code that runs, judges and reports them.
//!
//! ```text
//! catalogue ──select──▶ chosen ──target::plan──▶ Task … ──session::run──▶ Entry …
//! Entry … ──▶ Results ──▶ report.html, results.json
//! ```
//!
//! An experiment ([`experiment`]) is a figure or a table of a paper. It has the paper's claim, and
//! a function for each kind of machine. The function takes a [`context`] and returns an
//! [`outcome`]. The experiments of each paper are in a crate of their own. The command `stanchion`
//! has the catalogue of all.
//!
//! - [`select`] finds the experiments that a filter means. [`target`] finds the machines that they
//!   run on. [`session`] runs them in turn and shows one [`progress`] bar. [`results`] keeps what
//!   was [`asked`] and what they found, and [`report`] writes it.
//! - [`measure`] and [`simulation`] have the code that experiments share on this computer and on
//!   simulated machines. [`survey`] measures what the primitives of this computer cost.
//!   [`settings`] has the settings of programs that run on both. [`host`] describes this computer.
//! - [`others`] says how busy other programs are, and [`quiet`] waits until they are not.
//! - [`grids`] keeps what random grids found, and chooses among their contestants. [`share`] writes
//!   them for others to see, and compares those of several computers.
//! - [`units`], [`files`], [`output`], [`interrupt`], [`command`] and [`error`] are small helpers
//!   for all of them.

pub mod asked;
pub mod command;
pub mod context;
pub mod error;
pub mod experiment;
pub mod files;
pub mod grids;
pub mod host;
pub mod interrupt;
pub mod measure;
pub mod others;
pub mod outcome;
pub mod output;
pub mod progress;
pub mod quiet;
pub mod report;
pub mod results;
mod resume;
pub mod select;
pub mod session;
pub mod settings;
pub mod share;
pub mod simulation;
pub mod stated;
pub mod student;
pub mod survey;
pub mod target;
pub mod units;
