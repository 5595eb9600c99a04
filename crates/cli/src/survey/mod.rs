//! `stanchion machine`: what this machine is, what its primitives cost, and what its kernel would
//! do for a lock.

mod kernel;

use std::io::{self, Write};

use serde::Serialize;
use stanchion_machine::topology;

use crate::args::MachineOptions;
use crate::error::Error;
use stanchion_study::files::probe_for;
use stanchion_study::host::Host;
use stanchion_study::progress::Progress;
use stanchion_study::survey::{self, Cost, Measured, description};
use stanchion_study::units::nanos;

/// Explains a figure that would otherwise be taken for a mistake.
const OVERLAP: &str = "an access may cost less than an empty turn: the processor goes on with the \
     next turns while it completes";

/// All that is printed.
#[derive(Debug, Serialize)]
struct Machine {
    /// Names the layout of this document.
    schema: &'static str,
    /// The processors, the system and the load of this computer.
    machine: Host,
    /// Bytes that two values must be apart for writing one not to disturb the other.
    cache_line: usize,
    /// The source of cheap time.
    clock: String,
    /// The times of single operations.
    costs: Vec<Cost>,
    /// The facilities of the kernel.
    kernel: Vec<Facility>,
}

/// Something the kernel may offer.
#[derive(Debug, Serialize)]
pub(crate) struct Facility {
    /// Its name.
    pub(crate) what: &'static str,
    /// True if this process can use it.
    pub(crate) available: bool,
    /// The amount of it; or why it cannot be had, and what would mend that.
    pub(crate) detail: String,
}

/// Runs the command.
pub(crate) fn run(options: &MachineOptions) -> Result<(), Error> {
    if let Some(path) = &options.write {
        // Before anything is measured.
        probe_for(path, "--write FILE")?;
    }
    let machine = survey();
    if let Some(path) = &options.write {
        description::write(path, &description::of(&machine.costs)?)?;
    }
    let text =
        if options.json { serde_json::to_string_pretty(&machine)? + "\n" } else { machine.text() };
    let written = io::stdout().write_all(text.as_bytes());
    match written {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Write { path: "standard output".into(), source: error })
        }
        _ => Ok(()),
    }
}

fn survey() -> Machine {
    let host = Host::here();
    let progress = Progress::new(1, survey::EXPECTED);
    let costs = survey::costs(&host.processors, &progress.begin(0, "costs", survey::EXPECTED));
    progress.finish();
    Machine {
        schema: "stanchion-machine/1",
        cache_line: topology::CACHE_LINE,
        clock: stanchion_machine::clock::source().to_string(),
        kernel: kernel::facilities(),
        costs,
        machine: host,
    }
}

impl Machine {
    fn text(&self) -> String {
        let mut lines: Vec<(String, String)> = self
            .machine
            .lines()
            .into_iter()
            .map(|(what, value)| (what.to_owned(), value))
            .collect();
        lines.push(("words kept apart by".to_owned(), format!("{} bytes", self.cache_line)));
        lines.push(("waiters' clock".to_owned(), self.clock.clone()));
        lines.push((String::new(), String::new()));
        lines.extend(self.costs.iter().map(|cost| {
            let value = match &cost.measured {
                Measured::Nanos(cost) => nanos(*cost),
                Measured::NotMeasured(why) => format!("not measured: {why}"),
            };
            (cost.what.clone(), value)
        }));
        lines.push(("(note)".to_owned(), OVERLAP.to_owned()));
        lines.push((String::new(), String::new()));
        lines.extend(self.kernel.iter().map(|facility| {
            let answer = if facility.available { "yes" } else { "no" };
            (facility.what.to_owned(), format!("{answer}: {}", facility.detail))
        }));
        let width = lines.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
        lines
            .iter()
            .map(|(what, value)| format!("{what:width$}  {value}").trim_end().to_owned() + "\n")
            .collect()
    }
}
