//! The two committed tables. `xtask/WEAKEN.md` names the model that killed each mutant.
//! `crates/loom/survivors.txt` has the mutants that no model killed, with the reason why each
//! stays.
//!
//! The list of survivors is written by people:
//!
//! ```text
//! crates/spin/src/clh.rs | RawClh::lock swap#1 AcqRel -> Acquire
//!     Why the ordering is needed although no model shows it: a litmus test,
//!     and what loom does not explore of it.
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::models::{How, Outcome};
use super::{Mutant, misread};
use crate::failure::{Failure, Result};
use crate::shell;

/// For each listed survivor its argument.
pub(crate) type Survivors = BTreeMap<String, String>;

const SURVIVORS: &str = "crates/loom/survivors.txt";
const TABLE: &str = "xtask/WEAKEN.md";

fn key(mutant: &Mutant) -> String {
    format!("{} | {}", mutant.file, mutant.change)
}

/// The committed list.
pub(crate) fn survivors() -> Result<Survivors> {
    parse(&read(SURVIVORS)?).map_err(misread(SURVIVORS))
}

/// A committed file's text; empty if there is none.
fn read(name: &str) -> Result<String> {
    let path: PathBuf = shell::root().join(name);
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(Failure::file(&path)),
    }
}

fn parse(text: &str) -> std::result::Result<Survivors, String> {
    let mut survivors = Survivors::new();
    let mut current: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if line.starts_with(' ') {
            let key = current
                .as_ref()
                .ok_or_else(|| format!("line {number}: an argument without a site"))?;
            let argument = survivors.entry(key.clone()).or_default();
            if !argument.is_empty() {
                argument.push(' ');
            }
            argument.push_str(line.trim());
        } else if line.contains(" | ") && line.contains(" -> ") {
            let new = survivors.insert(line.trim().to_owned(), String::new()).is_none();
            if !new {
                return Err(format!("line {number}: listed twice"));
            }
            current = Some(line.trim().to_owned());
        } else {
            return Err(format!(
                "line {number}: neither `FILE | SITE -> WEAKER` nor an indented argument"
            ));
        }
    }
    match survivors.iter().find(|(_, argument)| argument.is_empty()) {
        Some((key, _)) => Err(format!("`{key}` has no argument below it")),
        None => Ok(survivors),
    }
}

/// The model that the table names for a mutant.
pub(crate) fn killer() -> Result<impl Fn(&Mutant) -> Option<String>> {
    let table = read(TABLE)?;
    Ok(move |mutant: &Mutant| named(&table, mutant))
}

fn named(table: &str, mutant: &Mutant) -> Option<String> {
    let begin = row_begin(mutant);
    let fate = table.lines().find_map(|line| line.strip_prefix(&begin))?;
    // A survivor's row has words there.
    Some(fate.trim_start().strip_prefix('`')?.split_once('`')?.0.to_owned())
}

/// Compares what happened with the list of survivors and with the table. `whole`: `results` are of
/// all mutants.
pub(crate) fn check(survivors: &Survivors, results: &[(&Mutant, Outcome)], whole: bool) -> Result {
    let complaints = complaints(survivors, &read(TABLE)?, results, whole);
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Failure::verdict(format!(
        "{}\nan ordering that nothing needs is weakened in the source; one that no model can miss is listed with its argument in {SURVIVORS}; {TABLE} is written by `cargo xtask weaken --update`",
        complaints.join("\n")
    )))
}

fn complaints(
    survivors: &Survivors,
    table: &str,
    results: &[(&Mutant, Outcome)],
    whole: bool,
) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut not_in_table = 0;
    for (mutant, outcome) in results {
        let key = key(mutant);
        let listed = survivors.contains_key(&key);
        let wrong = match outcome {
            Outcome::Killed { model, .. } if listed => {
                Some(format!("is listed as a survivor, but {model} fails: take it off the list"))
            }
            Outcome::Killed { .. } => None,
            _ if listed => None,
            Outcome::Survived { models } => Some(format!("none of {models} models fails")),
            Outcome::Unreached => Some("no model reaches it".to_owned()),
            Outcome::Unnamed => Some(format!("{TABLE} names no model that needs it")),
            Outcome::Undecided { model } => {
                Some(format!("undecided: {model} ran out of time; a smaller model is wanted"))
            }
        };
        match wrong {
            Some(why) => complaints.push(format!("{key}: {why}")),
            None if !table.contains(&row_begin(mutant)) => not_in_table += 1,
            None => {}
        }
    }
    if not_in_table > 0 {
        complaints.push(format!("{not_in_table} of these orderings are not in {TABLE}"));
    }
    if whole {
        let stale = survivors
            .keys()
            .filter(|listed| !results.iter().any(|(mutant, _)| key(mutant) == **listed));
        complaints
            .extend(stale.map(|listed| {
                format!("{listed}: listed as a survivor, but there is no such site")
            }));
    }
    complaints
}

/// Returns the beginning of the table's row of `mutant`. The file is in the row, so that a row can
/// be found by it.
fn row_begin(mutant: &Mutant) -> String {
    let file = mutant.file.strip_prefix("crates/").unwrap_or(&mutant.file).replace("/src/", "/");
    format!("| `{file}` | `{}` |", mutant.change)
}

/// Writes the table.
pub(crate) fn write(survivors: &Survivors, results: &[(&Mutant, Outcome)]) -> Result {
    let path = shell::root().join(TABLE);
    std::fs::write(&path, table(survivors, results)).map_err(Failure::file(&path))
}

fn table(survivors: &Survivors, results: &[(&Mutant, Outcome)]) -> String {
    let killed =
        results.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Killed { .. })).count();
    let others =
        if killed == results.len() { "" } else { " The others stay for the reason given." };
    let mut text = format!(
        "# Every ordering is needed\n\n\
         Written by `cargo xtask weaken --update`. Each memory ordering of the algorithms that asks for something is weakened in turn,\n\
         each fence of a handshake is left out in turn, and the named model then fails: {killed} of {} ways to weaken one are caught.{others}\n\
         Models cannot show everything: loom explores no load buffering and takes `SeqCst` accesses, fences apart, for `AcqRel`.\n\n\
         | file | ordering, weakened | caught by |\n| --- | --- | --- |\n",
        results.len()
    );
    for (mutant, outcome) in results {
        let fate = match outcome {
            Outcome::Killed { model, how: How::Failed } => format!("`{model}`"),
            Outcome::Killed { model, how: How::BranchLimit } => format!("`{model}` (never ends)"),
            _ => match survivors.get(&key(mutant)) {
                Some(argument) => format!("stays: {}", argument.replace('|', "\\|")),
                None => "**nothing**".to_owned(),
            },
        };
        text.push_str(&format!("{} {fate} |\n", row_begin(mutant)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(change: &str) -> Mutant {
        Mutant {
            room: "spin".to_owned(),
            file: "crates/spin/src/clh.rs".to_owned(),
            change: change.to_owned(),
            line: 1,
            site: 0,
            weaker: "Relaxed",
        }
    }

    fn killed() -> Outcome {
        Outcome::Killed { model: "clh_two".to_owned(), how: How::Failed }
    }

    const CHANGE: &str = "RawClh::lock swap#1 AcqRel -> Acquire";

    fn listed() -> Survivors {
        parse(&format!("# why\n\ncrates/spin/src/clh.rs | {CHANGE}\n    Because of\n    this.\n"))
            .unwrap()
    }

    #[test]
    fn an_argument_may_run_over_lines() {
        assert_eq!(listed().values().collect::<Vec<_>>(), ["Because of this."]);
    }

    #[test]
    fn a_list_that_argues_nothing_is_refused() {
        for (text, why) in [
            ("a | b -> c\n", "no argument"),
            ("    argument\n", "without a site"),
            ("a | b -> c\n x\na | b -> c\n x\n", "twice"),
            ("nonsense\n", "neither"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
    }

    #[test]
    fn a_survivor_must_be_listed_and_a_listed_one_must_survive() {
        let one = mutant(CHANGE);
        let of = |survivors: &Survivors, outcome: Outcome| {
            let results = [(&one, outcome)];
            let table = table(survivors, &results);
            complaints(survivors, &table, &results, true)
        };
        let survived = Outcome::Survived { models: 3 };
        assert!(of(&Survivors::new(), killed()).is_empty());
        assert!(of(&listed(), survived.clone()).is_empty());
        assert_eq!(of(&Survivors::new(), survived).len(), 1);
        assert_eq!(of(&Survivors::new(), Outcome::Unreached).len(), 1);
        assert_eq!(of(&Survivors::new(), Outcome::Undecided { model: "m".to_owned() }).len(), 1);
        assert_eq!(of(&listed(), killed()).len(), 1);
    }

    #[test]
    fn the_table_names_who_needs_an_ordering() {
        let one = mutant(CHANGE);
        let table = |outcome| table(&listed(), &[(&one, outcome)]);
        let killed_by = |how| Outcome::Killed { model: "clh::two".to_owned(), how };
        for how in [How::Failed, How::BranchLimit] {
            assert_eq!(named(&table(killed_by(how)), &one).as_deref(), Some("clh::two"));
        }
        let survived = Outcome::Survived { models: 3 };
        assert_eq!(named(&table(survived), &one), None, "an argument is no model");
        assert_eq!(named("", &one), None);
        let results = [(&one, Outcome::Unnamed)];
        assert_eq!(complaints(&Survivors::new(), "", &results, true).len(), 1);
        assert!(complaints(&listed(), &table(Outcome::Unnamed), &results, true).is_empty());
    }

    #[test]
    fn a_listed_site_that_is_gone_matters_to_a_whole_run() {
        assert_eq!(complaints(&listed(), "", &[], true).len(), 1);
        assert!(complaints(&listed(), "", &[], false).is_empty());
    }

    #[test]
    fn a_table_without_the_site_is_out_of_date() {
        let one = mutant(CHANGE);
        let said = complaints(&Survivors::new(), "", &[(&one, killed())], false);
        assert!(said[0].starts_with("1 of these"), "{said:?}");
    }
}
