//! Descriptions as text: JSON, in which each time has its unit.

use super::check::Invalid;
use super::description::Machine;
use crate::Time;

/// Why a text is no description.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It has not the shape of one.
    #[error("the description of a machine cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It has, but no machine is like that.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl Machine {
    /// The description as JSON, to be edited and read back.
    ///
    /// ```
    /// use stanchion_simulator::{Machine, machines};
    /// let machine = machines::challenge();
    /// let text = machine.to_json();
    /// assert!(text.contains(r#""quantum": "10 ms""#));
    /// assert_eq!(Machine::from_json(&text)?, machine);
    /// # Ok::<(), stanchion_simulator::machine::Unreadable>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let picos = serde_json::to_string_pretty(self).expect("plain data with text for keys");
        picos.lines().map(|line| with_unit(line).unwrap_or_else(|| line.into()) + "\n").collect()
    }

    /// Reads and checks a description.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Json`] with line and column, if it is not JSON or not of this shape: a field
    /// that is missing or unknown is named. [`Unreadable::Invalid`] if [`check`](Self::check)
    /// refuses it.
    pub fn from_json(text: &str) -> Result<Self, Unreadable> {
        let machine: Self = serde_json::from_str(text)?;
        machine.check()?;
        Ok(machine)
    }
}

/// A line of a description that is a time, with its unit. Line by line, because values of
/// serde_json do not keep the order of fields.
fn with_unit(line: &str) -> Option<String> {
    /// The whole numbers that are no times.
    const COUNTS: [&str; 4] = ["\"processors\"", "\"line\"", "\"sockets\"", "\"applications\""];
    let (field, value) = line.split_once(": ")?;
    let comma = if value.ends_with(',') { "," } else { "" };
    let picos = value.trim_end_matches(',').parse().ok()?;
    let time = Time::picos(picos).exact();
    (!COUNTS.contains(&field.trim())).then(|| format!("{field}: \"{time}\"{comma}"))
}
