//! The study: experiments as values, and what runs them, judges them and reports them.
//!
//! ```text
//! catalogue ──select──▶ chosen ──target::plan──▶ Task … ──session::run──▶ Entry … ──▶ Results ──▶ report.html, results.json
//! ```
//!
//! An experiment ([`experiment`]) is a figure or a table of a paper: what the paper claims, and a
//! function for each kind of machine that returns an [`outcome`]. It is handed a [`context`]. The
//! papers' experiments are in crates of their own, a crate for each paper; the command `stanchion`
//! has the catalogue of all.
//!
//! - [`select`] finds the experiments that a filter means, [`target`] the machines that they run
//!   on, [`session`] runs them in turn with one bar of [`progress`], [`results`] keeps what they
//!   found, and [`report`] writes it.
//! - [`measure`] and [`simulation`] have what experiments share on this computer and on simulated
//!   machines; [`survey`] what the primitives of this computer cost; [`settings`] what programs are
//!   told that run on both; [`host`] what this computer is.
//! - [`units`], [`files`], [`output`], [`interrupt`] and [`error`] are small helpers for all of
//!   them.

pub mod context;
pub mod error;
pub mod experiment;
pub mod files;
pub mod host;
pub mod interrupt;
pub mod measure;
pub mod outcome;
pub mod output;
pub mod progress;
pub mod report;
pub mod results;
pub mod select;
pub mod session;
pub mod settings;
pub mod simulation;
pub mod survey;
pub mod target;
pub mod units;
