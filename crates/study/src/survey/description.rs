//! The measured costs as the description of a simulated machine. `stanchion machine --write FILE`
//! writes one, and `--machine FILE` reads it.

use std::path::Path;

use stanchion_machine::topology;
use stanchion_simulator::machines::{self, Measured};
use stanchion_simulator::{Machine, Time};

use super::{Cost, atomics, lines, switches};
use crate::error::Error;
use crate::progress::Part;

/// Measures this computer and describes it. Also returns the nanoseconds that it took to fetch a
/// line that another processor had written.
pub fn measure(part: &Part) -> Result<(Machine, f64), Error> {
    let costs = super::costs(&topology::processors(), part);
    Ok((of(&costs)?, nanos(&costs, lines::FETCH)?))
}

fn nanos(costs: &[Cost], what: &str) -> Result<f64, Error> {
    match costs.iter().find(|cost| cost.what == what).map(|cost| &cost.measured) {
        Some(super::Measured::Nanos(nanos)) => Ok(*nanos),
        Some(super::Measured::NotMeasured(why)) => Err(not_measured(what, why)),
        None => Err(not_measured(what, "it is not among the costs")),
    }
}

/// Returns the description that belongs to `costs`, with as many processors as may be used.
pub fn of(costs: &[Cost]) -> Result<Machine, Error> {
    let picos = |what| nanos(costs, what).map(|nanos| Time::picos((nanos * 1e3).round() as u64));
    let (after, upgrade) = (picos(lines::AFTER_FETCH)?, picos(lines::UPGRADE)?);
    let measured = Measured {
        load: picos(atomics::LOAD)?,
        swap: picos(atomics::SWAP)?,
        fetch: picos(lines::FETCH)?,
        upgrade,
        migrates: after * 2 < upgrade,
        pause: picos(atomics::PAUSE)?,
        switch: picos(switches::SWITCH)?,
        round_trip: picos(switches::SAME)?,
        wake: picos(switches::WAKE)?,
        wakeup: picos(switches::WAKEUP)?,
    };
    Ok(Machine {
        name: "this computer".into(),
        ..machines::modern_measured(topology::processors().len(), measured)
    })
}

fn not_measured(what: &str, why: &str) -> Error {
    Error::NotDescribed { what: what.to_owned(), why: why.to_owned() }
}

/// Writes a description as JSON.
pub fn write(path: &Path, machine: &Machine) -> Result<(), Error> {
    crate::files::replace(path, machine.to_json().as_bytes())
}

/// Reads a description from JSON, and checks it.
pub fn read(path: &Path) -> Result<Machine, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::ReadMachine { path: path.to_owned(), source })?;
    Machine::from_json(&text)
        .map_err(|source| Error::BadMachine { path: path.to_owned(), source: Box::new(source) })
}
