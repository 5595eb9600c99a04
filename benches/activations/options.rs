//! What is asked for at the command line.

use std::time::Duration;

pub(crate) const HELP: &str = "\
cargo bench -p benches --bench activations -- [SECTION]... [options]

sections   fork, signal, blocked, upcall, hash, hogs; all of them if none is named
options    --rounds N           rounds (5)
           --milliseconds N     how long a contestant runs in a cell of a round (100)
           --files N            files of section hash (20000)
           --quick              one round of 20 milliseconds, 2000 files
           --only TEXT          only cells whose name contains TEXT, such as '1 processor' or 'cold'; several are or'ed
           --contestant TEXT    only contestants whose name contains TEXT; several are or'ed
";

const SECTIONS: [&str; 6] = ["fork", "signal", "blocked", "upcall", "hash", "hogs"];

pub(crate) struct Options {
    sections: Vec<String>,
    cells: Vec<String>,
    contestants: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) lasting: Duration,
    pub(crate) files: usize,
}

/// Why nothing is measured.
pub(crate) enum Stop {
    Help,
    Refused(String),
}

impl Options {
    pub(crate) fn from_arguments(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, Stop> {
        let mut options = Self {
            sections: Vec::new(),
            cells: Vec::new(),
            contestants: Vec::new(),
            rounds: 5,
            lasting: Duration::from_millis(100),
            files: 20_000,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let lacking =
                    || Stop::Refused(format!("{argument}: wants a value behind it; see --help"));
                arguments.next().ok_or_else(lacking)
            };
            match argument.as_str() {
                // Said by cargo.
                "--bench" => {}
                "--help" | "-h" => return Err(Stop::Help),
                // `--test` is said by `cargo test --benches`: only whether everything runs.
                "--test" => options.only_once(Duration::from_millis(1), 100),
                "--quick" => options.only_once(Duration::from_millis(20), 2_000),
                "--rounds" => options.rounds = number(&argument, &value()?)? as usize,
                "--files" => options.files = number(&argument, &value()?)? as usize,
                "--milliseconds" => {
                    options.lasting = Duration::from_millis(number(&argument, &value()?)?);
                }
                "--only" => options.cells.push(value()?),
                "--contestant" => options.contestants.push(value()?),
                section if SECTIONS.contains(&section) => options.sections.push(argument),
                _ => {
                    let known = SECTIONS.join(", ");
                    return Err(Stop::Refused(format!(
                        "{argument}: neither a section ({known}) nor an option; see --help"
                    )));
                }
            }
        }
        Ok(options)
    }

    fn only_once(&mut self, lasting: Duration, files: usize) {
        (self.rounds, self.lasting, self.files) = (1, lasting, files);
    }

    pub(crate) fn wants_section(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|wanted| wanted == section)
    }

    pub(crate) fn wants_cell(&self, name: &str) -> bool {
        contained(&self.cells, name)
    }

    pub(crate) fn wants_contestant(&self, name: &str) -> bool {
        contained(&self.contestants, name)
    }
}

fn contained(filters: &[String], name: &str) -> bool {
    filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
}

fn number(option: &str, value: &str) -> Result<u64, Stop> {
    value.parse().ok().filter(|&number| number > 0).ok_or_else(|| {
        Stop::Refused(format!("{option} {value}: wants a whole number from 1; try {option} 20"))
    })
}
