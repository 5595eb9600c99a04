//! The command line of a program. The program has sections, sections have cells, and cells have
//! contestants.

use std::time::Duration;

use crate::known::{NUMBERS, SECTIONS};

/// An option that is a number.
pub(crate) struct Number {
    pub(crate) name: &'static str,
    /// The value without an option.
    pub(crate) usually: u64,
    /// The value with `--quick`.
    pub(crate) quick: u64,
    /// The value with `--test`, which `cargo test --benches` gives: it only shows whether
    /// everything runs.
    pub(crate) test: u64,
}

/// The options of one call of the program.
pub(crate) struct Options {
    /// The names of the selected sections. Empty: all.
    sections: Vec<String>,
    /// Parts of the names of the selected cells. Empty: all.
    cells: Vec<String>,
    /// Parts of the names of the selected contestants. Empty: all.
    contestants: Vec<String>,
    /// The values of `NUMBERS`, in their order.
    numbers: Vec<u64>,
}

/// The reason why nothing is measured.
pub(crate) enum Stop {
    Help,
    Refused(String),
}

impl Options {
    pub(crate) fn from_arguments(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, Stop> {
        let all = |of: fn(&Number) -> u64| NUMBERS.iter().map(of).collect();
        let mut options = Self {
            sections: Vec::new(),
            cells: Vec::new(),
            contestants: Vec::new(),
            numbers: all(|number| number.usually),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let lacking =
                    || Stop::Refused(format!("{argument}: wants a value behind it; see --help"));
                arguments.next().ok_or_else(lacking)
            };
            match argument.as_str() {
                // Given by cargo.
                "--bench" => {}
                "--help" | "-h" => return Err(Stop::Help),
                "--test" => options.numbers = all(|number| number.test),
                "--quick" => options.numbers = all(|number| number.quick),
                "--only" => options.cells.push(value()?),
                "--contestant" => options.contestants.push(value()?),
                section if SECTIONS.contains(&section) => options.sections.push(argument),
                other => match place(other) {
                    Some(place) => options.numbers[place] = number(&argument, &value()?)?,
                    None => {
                        let known = SECTIONS.join(", ");
                        return Err(Stop::Refused(format!(
                            "{argument}: neither a section ({known}) nor an option; see --help"
                        )));
                    }
                },
            }
        }
        Ok(options)
    }

    /// Returns the value of an option of `NUMBERS`.
    pub(crate) fn number(&self, name: &str) -> u64 {
        place(name).map_or_else(|| unreachable!("{name} is no option"), |place| self.numbers[place])
    }

    pub(crate) fn rounds(&self) -> usize {
        self.number("--rounds") as usize
    }

    pub(crate) fn lasting(&self) -> Duration {
        Duration::from_millis(self.number("--milliseconds"))
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

fn place(name: &str) -> Option<usize> {
    NUMBERS.iter().position(|number| number.name == name)
}

fn contained(filters: &[String], name: &str) -> bool {
    filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
}

fn number(option: &str, value: &str) -> Result<u64, Stop> {
    value.parse().ok().filter(|&number| number > 0).ok_or_else(|| {
        Stop::Refused(format!("{option} {value}: wants a whole number from 1; try {option} 20"))
    })
}
