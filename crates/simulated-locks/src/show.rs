//! Parts that the simulated experiments share in their reports.

use stanchion_study::outcome::Table;

/// The note of every outcome of a simulated lock about the time of computation.
pub const COMPUTATION: &str = "Memory, bus and scheduler are simulated; what the program computes \
     takes the time it is given. The unit is one turn of an empty loop, 2.5 µs on the Symmetry \
     (table 3.1) and in proportion elsewhere. To increment the counter and compare it takes one, \
     as a loop does with its own, and a read and a write of memory beside the lock's; outside the \
     section there is nothing.";

/// Makes a table with one row for each name.
pub fn table<'a, T: 'a>(
    title: &str,
    corner: &str,
    heads: impl Iterator<Item = String>,
    rows: impl Iterator<Item = (&'static str, &'a [T])>,
    value: impl Fn(&T) -> String,
) -> Table {
    let row = |(name, cells): (&'static str, &'a [T])| {
        std::iter::once(name.to_owned()).chain(cells.iter().map(&value)).collect()
    };
    Table {
        title: title.to_owned(),
        columns: std::iter::once(corner.to_owned()).chain(heads).collect(),
        rows: rows.map(row).collect(),
    }
}
