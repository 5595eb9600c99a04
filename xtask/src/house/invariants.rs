//! A reference to an invariant by number names one that exists: in that file, or in the file that
//! is named.
//!
//! An invariant is an item of a numbered list under a heading with that word, in a comment. A
//! reference names another file after "of" or "in": as "of `switches.rs`", or "of
//! [`crate::switches`]".

use std::collections::{BTreeMap, BTreeSet};

use super::places::{Place, Places};

/// The numbers of the invariants of each file, by path.
#[derive(Default)]
pub(crate) struct Invariants(BTreeMap<String, BTreeSet<usize>>);

/// A reference to invariants.
#[derive(Debug, PartialEq, Eq)]
struct Reference {
    /// Its line, from 1.
    line: usize,
    /// The numbers of the invariants.
    numbers: Vec<usize>,
    /// The file or module that is named after "of".
    of: Option<String>,
}

impl Invariants {
    /// Notes the invariants that a file states.
    pub(crate) fn read(&mut self, path: &str, source: &str) {
        self.0.insert(path.to_owned(), stated(source));
    }

    /// Returns the references of a file that lead nowhere.
    pub(crate) fn wrong(&self, path: &str, source: &str) -> Places {
        let mut places = Places::new();
        for reference in references(source) {
            let files = match &reference.of {
                Some(of) => self.named(path, of),
                None => vec![path],
            };
            for number in &reference.numbers {
                let exists =
                    |file: &&str| self.0.get(*file).is_some_and(|numbers| numbers.contains(number));
                if !files.iter().any(exists) {
                    let where_to = match &reference.of {
                        Some(of) => format!("in `{of}`"),
                        None => "in this file: name the file after `of`".to_owned(),
                    };
                    let why = format!("there is no Invariant {number} {where_to}");
                    places.push(Place::new(path, reference.line, why));
                }
            }
        }
        places
    }

    /// Returns the files that `of` may mean in the file `path`: of its own crate if there is one.
    fn named(&self, path: &str, of: &str) -> Vec<&str> {
        let name = of.strip_suffix(".rs").unwrap_or(of).replace("::", "/");
        let name = name.trim_start_matches("crate/").trim_start_matches("super/");
        let is_named = |file: &&String| {
            let stem = file.strip_suffix(".rs").unwrap_or(file);
            let stem = stem.strip_suffix("/mod").unwrap_or(stem);
            stem == name || stem.ends_with(&format!("/{name}"))
        };
        let all: Vec<&str> = self.0.keys().filter(is_named).map(String::as_str).collect();
        let folder = path.split_inclusive('/').take(2).collect::<String>();
        let own: Vec<&str> = all.iter().copied().filter(|file| file.starts_with(&folder)).collect();
        if own.is_empty() { all } else { own }
    }
}

/// Returns the text of a line of a comment, without its mark.
fn text(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.strip_prefix(['/', '!']).unwrap_or(rest))
}

fn stated(source: &str) -> BTreeSet<usize> {
    let mut numbers = BTreeSet::new();
    let mut inside = false;
    for line in source.lines() {
        let Some(text) = text(line).map(str::trim) else {
            inside = false;
            continue;
        };
        if text.starts_with('#') {
            inside = text.to_ascii_lowercase().contains("invariant");
        } else if inside
            && let Some((number, _)) = text.split_once(". ")
            && let Ok(number) = number.parse()
        {
            numbers.insert(number);
        }
    }
    numbers
}

/// Returns the references in a file. Lines of a comment are read as one text, since a reference may
/// be broken anywhere.
fn references(source: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let lines: Vec<&str> = source.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let own = text(line).unwrap_or(line);
        // What follows on the next lines of the same comment.
        let mut after = String::new();
        if text(line).is_some() {
            for next in lines[number + 1..].iter().take(2).map_while(|line| text(line)) {
                after.push(' ');
                after.push_str(next.trim());
            }
        }
        for (at, word) in own.match_indices("Invariant") {
            let rest = format!("{}{after}", &own[at + word.len()..]);
            if let Some((numbers, of)) = cited(&rest) {
                found.push(Reference { line: number + 1, numbers, of });
            }
        }
    }
    found
}

/// Reads what follows the word "Invariant": numbers, and what is named after "of".
fn cited(rest: &str) -> Option<(Vec<usize>, Option<String>)> {
    let mut rest = rest.strip_prefix('s').unwrap_or(rest).trim_start();
    let mut numbers = Vec::new();
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse() else { break };
        numbers.push(number);
        rest = &rest[digits..];
        let next = [", and ", ", ", " and ", " or ", " to "]
            .into_iter()
            .find_map(|joint| rest.strip_prefix(joint))
            .filter(|next| next.starts_with(|c: char| c.is_ascii_digit()));
        match next {
            Some(next) => rest = next,
            None => break,
        }
    }
    if numbers.is_empty() {
        return None;
    }
    let of = ["of ", "in "].into_iter().find_map(|word| {
        let named = rest.trim_start().strip_prefix(word)?.trim_start();
        let named = named.strip_prefix('[').unwrap_or(named).strip_prefix('`')?;
        Some(named.split_once('`')?.0.to_owned())
    });
    Some((numbers, of))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the word for `§`, so that this file has no references of its own.
    fn cited_in(text: &str) -> String {
        text.replace('§', "Invariant")
    }

    const STATED: &str = "//! # Invariants\n//!\n//! 1. One.\n//! 2. Two,\n//!    and 7. more.\n//!\n//! # Orderings\n//!\n//! 3. Three.\n";

    #[test]
    fn invariants_are_the_items_below_their_heading() {
        assert_eq!(stated(STATED), BTreeSet::from([1, 2]));
        assert_eq!(
            stated("/// # Invariants of a node\n/// 4. Four.\nfn f() {}\n/// 5. Five."),
            BTreeSet::from([4])
        );
    }

    #[test]
    fn a_reference_may_name_several_and_another_file_on_the_next_line() {
        let of = |text: &str| {
            let found = references(&cited_in(text));
            found.into_iter().map(|one| (one.line, one.numbers, one.of)).collect::<Vec<_>>()
        };
        assert_eq!(of("// §s 1, 2 and 4 hold."), [(1, vec![1, 2, 4], None)]);
        assert_eq!(of("f(); // by § 3, 5 of them"), [(1, vec![3, 5], None)]);
        assert_eq!(
            of("/// (§ 3 of\n/// [`crate::a`]).\n"),
            [(1, vec![3], Some("crate::a".to_owned()))]
        );
        assert_eq!(of("x.expect(\"§ 3\")"), [(1, vec![3], None)]);
        assert!(of("# Invariants\nInvariant holds").is_empty());
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_wrong() {
        let mut invariants = Invariants::default();
        invariants.read("crates/a/src/b/mod.rs", STATED);
        invariants.read("crates/z/src/b.rs", "//! # Invariants\n//! 9. Nine.\n");
        invariants.read("crates/a/src/c.rs", "");
        let wrong = |text: &str| invariants.wrong("crates/a/src/c.rs", &cited_in(text)).len();
        assert_eq!(wrong("// §s 1 and 2 of `b`."), 0);
        assert_eq!(wrong("// § 1 of [`crate::b`], and § 2 in `b.rs`."), 0);
        assert_eq!(wrong("// § 9 of `b.rs`."), 1, "the own crate's file is meant");
        assert_eq!(wrong("// § 9 of `z/src/b.rs`."), 0);
        assert_eq!(wrong("// §s 1 and 2."), 2);
        assert_eq!(wrong("// § 1 of `d`."), 1);
    }
}
