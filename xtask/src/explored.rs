//! The part of each model's state space that the explorer looked at, and the committed table of it.
//!
//! A model prints `model NAME: N executions`. The table `crates/loom/explored.txt` holds the last
//! accepted N of each. A search that shrinks is an error until a commit changes the number and says
//! why: a bound set too low, a wait that prunes too much or an assertion that moved before the race
//! all look like a faster, greener model.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::shell;

/// Executions explored, by model.
pub(crate) type Explored = BTreeMap<String, u64>;

const HEADER: &str = "\
# Executions that loom explored of each model. Written by `cargo xtask loom --update`; a smaller number fails `cargo xtask loom`.
";

/// The models that `output` reports. The words may follow anything on their line: libtest prints
/// `test NAME ... ` first.
pub(crate) fn reported(output: &str) -> Explored {
    output.lines().filter_map(report).collect()
}

fn report(line: &str) -> Option<(String, u64)> {
    let (name, rest) = line.match_indices("model ").find_map(|(at, word)| {
        let starts_word = line[..at].chars().next_back().is_none_or(char::is_whitespace);
        let (name, rest) = line[at + word.len()..].split_once(": ")?;
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        (starts_word && is_name).then_some((name, rest))
    })?;
    let (count, unit) = rest.split_once(' ')?;
    if !unit.starts_with("execution") {
        return None;
    }
    Some((name.to_owned(), count.replace([',', '_'], "").parse().ok()?))
}

/// The committed table's place.
pub(crate) fn table() -> PathBuf {
    shell::root().join("crates/loom/explored.txt")
}

/// The committed table; empty if there is none.
pub(crate) fn committed() -> Result<Explored> {
    let path = table();
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Explored::new()),
        Err(error) => Err(Failure::file(&path)(error)),
    }
}

fn parse(text: &str) -> Result<Explored> {
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            let mut words = line.split_whitespace();
            match (words.next(), words.next().map(str::parse), words.next()) {
                (Some(name), Some(Ok(count)), None) => Ok((name.to_owned(), count)),
                _ => Err(Failure::verdict(format!(
                    "crates/loom/explored.txt:{}: `{line}` is not `NAME COUNT`; write the table anew with `cargo xtask loom --update`",
                    number + 1
                ))),
            }
        })
        .collect()
}

/// Writes the table.
pub(crate) fn commit(explored: &Explored) -> Result {
    let width = explored.keys().map(String::len).max().unwrap_or(0);
    let lines = explored.iter().map(|(name, count)| format!("{name:width$} {count:>9}\n"));
    let text = HEADER.to_owned() + &lines.collect::<String>();
    let path = table();
    std::fs::write(&path, text).map_err(Failure::file(&path))
}

/// Returns what is wrong with `now` beside `then`. With `whole`, a model that is in one table only
/// is wrong too.
pub(crate) fn complaints(then: &Explored, now: &Explored, whole: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    // One that the table has accepted touches nothing that both threads share, which is what it
    // shows.
    let alone = |name: &String, count: u64| count <= 1 && then.get(name) != Some(&count);
    for (name, _) in now.iter().filter(|&(name, &count)| alone(name, count)) {
        complaints.push(format!(
            "{name}: one execution; whatever it has two threads for was never interleaved"
        ));
    }
    for (name, &before) in then {
        match now.get(name) {
            Some(&count) if count < before => {
                complaints.push(format!(
                    "{name}: explored {count} executions, {before} before: the search shrank"
                ));
            }
            None if whole => {
                complaints.push(format!("{name}: in the table, but it reported nothing"))
            }
            _ => {}
        }
    }
    if whole {
        let new = now.keys().filter(|name| !then.contains_key(*name)).cloned().collect::<Vec<_>>();
        if !new.is_empty() {
            complaints.push(format!("not in the table yet: {}", new.join(", ")));
        }
    }
    complaints
}

/// Prints `now` as a table beside `then`.
pub(crate) fn print(then: &Explored, now: &Explored) {
    let width = now.keys().map(String::len).max().unwrap_or(0).max("model".len());
    println!("\n{:width$}  executions", "model");
    for (name, count) in now {
        let change = match then.get(name) {
            None => "  new",
            Some(before) if before > count => "  SHRANK",
            Some(before) if before < count => "  grew",
            Some(_) => "",
        };
        println!("{name:width$}  {count:>10}{change}");
    }
    println!("{:width$}  {:>10}", "all", now.values().sum::<u64>());
}

/// Compares `output` with the committed table, prints the comparison, and fails on a complaint.
pub(crate) fn check(output: &str, whole: bool) -> Result {
    let (then, now) = (committed()?, reported(output));
    print(&then, &now);
    let complaints = complaints(&then, &now, whole);
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Failure::verdict(format!(
        "{}\nif that is meant, `cargo xtask loom --update` accepts it; say why in the commit",
        complaints.join("\n")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, u64)]) -> Explored {
        rows.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn a_report_is_found_behind_what_libtest_prints() {
        let output = "running 2 tests\n\
                      test ticket_two ... model ticket_two: 4693 executions\nok\n\
                      model mcs_three: 14,269 executions (3 preemptions)\n\
                      the model is: fine\nmodel of a thing: 3 executions\nmodel x: many executions\nmodel y: 7 branches\n";
        assert_eq!(reported(output), table(&[("mcs_three", 14_269), ("ticket_two", 4_693)]));
    }

    #[test]
    fn a_shrinking_search_is_a_complaint_and_a_growing_one_is_not() {
        let then = table(&[("a", 10), ("b", 10), ("c", 10)]);
        let now = table(&[("a", 9), ("b", 11), ("c", 10)]);
        let said = complaints(&then, &now, true);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("a: "), "{said:?}");
    }

    #[test]
    fn a_search_of_one_execution_is_a_complaint_unless_the_table_has_it() {
        let now = table(&[("alone", 1)]);
        assert_eq!(complaints(&table(&[("alone", 2)]), &now, false).len(), 2);
        assert!(complaints(&now, &now, true).is_empty());
    }

    #[test]
    fn a_missing_and_a_new_model_matter_only_to_a_whole_run() {
        let (then, now) = (table(&[("gone", 2)]), table(&[("new", 2)]));
        assert_eq!(complaints(&then, &now, true).len(), 2);
        assert!(complaints(&then, &now, false).is_empty());
    }

    #[test]
    fn a_table_that_is_none_is_refused_with_its_line() {
        assert_eq!(parse("# c\na 3\n").unwrap(), table(&[("a", 3)]));
        let refused = parse("# c\na 3\nb three\n").unwrap_err().to_string();
        assert!(refused.contains("explored.txt:3"), "{refused}");
    }
}
