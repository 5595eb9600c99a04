//! The part of a command line that decides what a study measures. The results of a study keep it,
//! so that an interrupted study can go on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::command::{quoted, stanchion};

/// The output folder of a command without `--output`.
const OUT: &str = "study";

/// Filters and options, and the version that read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The version of this package.
    pub version: String,
    /// The filters.
    pub filters: BTreeSet<String>,
    /// The options with their values. A flag has none.
    pub options: BTreeMap<String, Vec<String>>,
}

impl Asked {
    /// Returns the filters, without an option.
    pub fn new(filters: &[String]) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            filters: filters.iter().cloned().collect(),
            options: BTreeMap::new(),
        }
    }

    /// Returns the same, with the flag `option` if it is given.
    #[must_use]
    pub fn with_flag(mut self, option: &str, given: bool) -> Self {
        if given {
            self.options.insert(option.to_owned(), Vec::new());
        }
        self
    }

    /// Returns the same, with the values of `option` if there are any.
    #[must_use]
    pub fn with_values<T: ToString>(
        mut self,
        option: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        if !values.is_empty() {
            self.options.insert(option.to_owned(), values);
        }
        self
    }

    /// Returns the command that goes on with the study in the folder `out`.
    pub fn command(&self, out: &Path) -> String {
        let mut words = vec![stanchion().to_owned(), "study".to_owned()];
        words.extend(self.filters.iter().map(|filter| quoted(filter).into_owned()));
        for (option, values) in &self.options {
            let option = quoted(option).into_owned();
            if values.is_empty() {
                words.push(option.clone());
            }
            words.extend(values.iter().map(|value| format!("{option} {}", quoted(value))));
        }
        if out != Path::new(OUT) {
            words.push(format!("--output {}", quoted(&out.to_string_lossy())));
        }
        words.push("--resume".to_owned());
        words.join(" ")
    }

    /// Returns a field of which `now` has something else: its name, the value here, and that of
    /// `now`.
    pub(crate) fn difference(&self, now: &Self) -> Option<(String, String, String)> {
        let filters = |of: &Self| match of.filters.len() {
            0 => "none".to_owned(),
            _ => of.filters.iter().cloned().collect::<Vec<_>>().join(" "),
        };
        if self.filters != now.filters {
            return Some(("filter".to_owned(), filters(self), filters(now)));
        }
        let mut names = self.options.keys().chain(now.options.keys());
        let option = names.find(|&name| self.options.get(name) != now.options.get(name))?;
        let words = |of: &Self| match of.options.get(option) {
            None => "not given".to_owned(),
            Some(values) if values.is_empty() => "given".to_owned(),
            Some(values) => values.join(","),
        };
        Some((option.clone(), words(self), words(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_all_that_was_asked() {
        let filters = ["fig3.*", "all89"].map(str::to_owned);
        let asked = Asked::new(&filters)
            .with_flag("--quick", true)
            .with_flag("--full", false)
            .with_values("--cells", ["8t-hogs", "phases"])
            .with_values("--rounds", None::<u8>)
            .with_values("--seed", [7]);
        let words = "study all89 'fig3.*' --cells 8t-hogs --cells phases --quick --seed 7";
        assert_eq!(asked.command(Path::new("study")), format!("stanchion {words} --resume"));
        let elsewhere = format!("stanchion {words} --output 'my study' --resume");
        assert_eq!(asked.command(Path::new("my study")), elsewhere);
    }
}
