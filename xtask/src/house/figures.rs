//! The committed figures: for each folder and rule the number that may not rise.
//!
//! `xtask/house.txt` is a table with a row for each folder. `cargo xtask house --update` lowers its
//! figures to those of today, and raises none. A folder without a row has only zeros to reach.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::places::Places;
use crate::failure::{Failure, Result};
use crate::shell;

/// The rules, in the order of the columns.
pub(crate) const RULES: [&str; 11] = [
    "circle",
    "rooms",
    "upward",
    "wide",
    "persons",
    "openers",
    "strings",
    "untold",
    "invariants",
    "orderings",
    "paths",
];

const TABLE: &str = "xtask/house.txt";

const HEADER: &str = "\
# Figures that may fall and never rise. Written by `cargo xtask house --update`, which lowers them; a larger number fails `cargo xtask house`.
#   circle      modules in the largest circle of imports; 0 if there is no circle
#   rooms       rooms in the largest circle of rooms: modules in the root of src with all that is inside them
#   upward      imports against the order of rooms in xtask/rooms.txt, and rooms without a place there
#   wide        lines with a comment of more than 100 columns
#   persons     who, whom, whose, whoever, nobody, somebody, anybody per 1,000 words of comments
#   openers     doc comments that open with What, How, Whether, That, Who, Whose, Whoever or Nobody, in per cent
#   strings     messages of three words or more with one of these words
#   untold      private fields without a comment, in per cent
#   invariants  references to an invariant that is not in that file, or not in the file named
#   orderings   orderings other than Relaxed without a comment
#   paths       paths in Markdown that lead nowhere
";

/// One rule's figure for one folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// The number; in tenths for `persons`.
    pub(crate) value: u64,
    /// Where the rule is broken.
    pub(crate) places: Places,
}

impl Figure {
    pub(crate) fn new(value: u64, places: Places) -> Self {
        Self { value, places }
    }

    /// The number of places.
    pub(crate) fn counted(places: Places) -> Self {
        Self { value: places.len() as u64, places }
    }
}

/// For each folder its figures, by rule.
pub(crate) type Figures = BTreeMap<String, BTreeMap<&'static str, Figure>>;

/// For each folder its committed numbers, in the order of [`RULES`].
pub(crate) type Committed = BTreeMap<String, [u64; RULES.len()]>;

/// Returns the committed table; `None` if there is none.
pub(crate) fn committed() -> Result<Option<Committed>> {
    let path = shell::root().join(TABLE);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            parse(&text).map(Some).map_err(|why| Failure::verdict(format!("{TABLE}: {why}")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::file(&path)(error)),
    }
}

/// Writes the table with each figure lowered to that of `now`. Without a committed table, writes
/// the figures of `now`.
pub(crate) fn update(committed: Option<&Committed>, now: &Figures) -> Result {
    let path = shell::root().join(TABLE);
    std::fs::write(&path, table(&lowered(committed, now))).map_err(Failure::file(&path))
}

fn lowered(committed: Option<&Committed>, now: &Figures) -> Committed {
    let row = |(folder, figures): (&String, &BTreeMap<&'static str, Figure>)| {
        let numbers = std::array::from_fn(|at| {
            let value = figures.get(RULES[at]).map_or(0, |figure| figure.value);
            match committed {
                Some(rows) => value.min(rows.get(folder).map_or(0, |row| row[at])),
                None => value,
            }
        });
        (folder.clone(), numbers)
    };
    now.iter().map(row).collect()
}

fn parse(text: &str) -> std::result::Result<Committed, String> {
    let mut rows = Committed::new();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let folder = words.next().unwrap_or_default();
        let numbers: Option<Vec<u64>> =
            RULES.iter().zip(words.by_ref()).map(|(rule, word)| read(rule, word)).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        let numbers = numbers.filter(|_| words.next().is_none()).ok_or_else(|| {
            format!("line {}: not a folder and {} figures", number + 1, RULES.len())
        })?;
        if rows.insert(folder.to_owned(), numbers).is_some() {
            return Err(format!("line {}: {folder} has two rows", number + 1));
        }
    }
    Ok(rows)
}

fn read(rule: &str, word: &str) -> Option<u64> {
    if rule != "persons" {
        return word.parse().ok();
    }
    let (whole, tenth) = word.split_once('.')?;
    let tenth: u64 = tenth.parse().ok().filter(|_| tenth.len() == 1)?;
    Some(10 * whole.parse::<u64>().ok()? + tenth)
}

/// Returns a figure as it stands in the table.
pub(crate) fn written(rule: &str, value: u64) -> String {
    if rule == "persons" { format!("{}.{}", value / 10, value % 10) } else { value.to_string() }
}

fn table(rows: &Committed) -> String {
    let widest = rows.keys().map(String::len).max().unwrap_or(0).max(2);
    let mut text = format!("{HEADER}#\n#{:widest$}", "");
    for rule in RULES {
        let _ = write!(text, "  {rule}");
    }
    text.push('\n');
    for (folder, numbers) in rows {
        let _ = write!(text, "{folder:widest$} ");
        for (rule, value) in RULES.iter().zip(numbers) {
            let _ = write!(text, "  {:>width$}", written(rule, *value), width = rule.len());
        }
        text.push('\n');
    }
    text
}

/// The most places that a complaint lists.
const LISTED: usize = 20;

/// Returns what has risen.
pub(crate) fn risen(committed: &Committed, now: &Figures) -> Vec<String> {
    let mut complaints = Vec::new();
    for (folder, figures) in now {
        for (at, rule) in RULES.iter().enumerate() {
            let Some(figure) = figures.get(rule) else { continue };
            let most = committed.get(folder).map_or(0, |row| row[at]);
            if figure.value <= most {
                continue;
            }
            let (now, most) = (written(rule, figure.value), written(rule, most));
            complaints.push(format!("{folder}: {rule} is {now}, and may be {most} at most"));
            if figure.places.len() <= LISTED {
                complaints.extend(figure.places.iter().map(|place| format!("    {place}")));
            } else {
                complaints.push(format!(
                    "    {} places: `cargo xtask house --list {folder}` names them",
                    figure.places.len()
                ));
            }
        }
    }
    complaints
}

/// Returns how many figures can be lowered. Without a committed table there is none.
pub(crate) fn fallen(committed: Option<&Committed>, now: &Figures) -> usize {
    let Some(committed) = committed else { return 0 };
    let lower = lowered(Some(committed), now);
    let changed = |(folder, row): (&String, &[u64; RULES.len()])| {
        let then = committed.get(folder).copied().unwrap_or_default();
        row.iter().zip(then).filter(|(now, then)| **now < *then).count()
    };
    lower.iter().map(changed).sum()
}

#[cfg(test)]
mod tests {
    use super::super::places::Place;
    use super::*;

    fn now(folder: &str, rule: &'static str, value: u64) -> Figures {
        let places = vec![Place::new("a.rs", 3, "wrong".to_owned())];
        [(folder.to_owned(), [(rule, Figure::new(value, places))].into())].into()
    }

    #[test]
    fn a_table_reads_as_it_was_written() {
        let rows = lowered(None, &now("crates/spin", "persons", 123));
        let text = table(&rows);
        assert!(text.contains(" 12.3 "), "{text}");
        assert_eq!(parse(&text).unwrap(), rows);
    }

    #[test]
    fn a_figure_that_rises_is_told_with_its_places() {
        let then = lowered(None, &now("a", "wide", 2));
        assert!(risen(&then, &now("a", "wide", 2)).is_empty());
        let told = risen(&then, &now("a", "wide", 3));
        assert_eq!(told, ["a: wide is 3, and may be 2 at most", "    a.rs:3: wrong"]);
        assert_eq!(risen(&then, &now("new", "wide", 1)).len(), 2, "a new folder has zeros");
    }

    #[test]
    fn an_update_lowers_and_never_raises() {
        let then = lowered(None, &now("a", "wide", 2));
        assert_eq!(lowered(Some(&then), &now("a", "wide", 3)), then);
        assert_eq!(lowered(Some(&then), &now("a", "wide", 1)), lowered(None, &now("a", "wide", 1)));
        assert_eq!(fallen(Some(&then), &now("a", "wide", 1)), 1);
        assert_eq!(fallen(Some(&then), &now("a", "wide", 3)), 0);
        assert!(lowered(Some(&then), &now("b", "wide", 1))["b"].iter().all(|value| *value == 0));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_refused() {
        for text in ["a 1 2\n", "a 0 0 0 0 0 0 0 0 0 0 0\n", "a 0 0 0 0 0.0 0 0 0 0 0 0 0\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let row = "a 0 0 0 0 0.0 0 0 0 0 0 0\n";
        assert_eq!(parse(row).unwrap().len(), 1);
        assert!(parse(&row.repeat(2)).unwrap_err().contains("two rows"));
    }
}
