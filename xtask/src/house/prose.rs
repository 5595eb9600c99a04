//! Counts, line by line, habits that make comments, messages and Markdown files hard to read.
//!
//! The numbers are symptoms: a sentence that names its actor and opens with its verb has none of
//! them.

use super::figures::Figure;
use super::places::{Place, Places};

/// The most columns of a comment.
const WIDEST: usize = 100;

/// Words that stand for an actor without naming it.
const PERSONS: [&str; 7] = ["who", "whom", "whose", "whoever", "nobody", "somebody", "anybody"];

/// First words of a doc comment that says neither what an item is nor what it does.
const OPENERS: [&str; 8] = ["What", "How", "Whether", "That", "Who", "Whose", "Whoever", "Nobody"];

/// The fewest words of a string that is read as a message.
const MESSAGE: usize = 3;

/// The counts of the files of one folder.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    /// Words in comments, or in Markdown outside of code blocks.
    words: u64,
    /// Doc comments, of items and of modules.
    docs: u64,
    /// Fields of structs that are not public.
    fields: u64,
    /// Words of `PERSONS` in comments.
    persons: Places,
    /// Doc comments that open with a word of `OPENERS`.
    openers: Places,
    /// Lines with a comment that are wider than `WIDEST`.
    wide: Places,
    /// Messages with a word of `PERSONS`.
    strings: Places,
    /// Private fields without a comment on their line or on the line above.
    untold: Places,
}

impl Prose {
    /// Counts the lines of a Rust file.
    pub(crate) fn read_rust(&mut self, path: &str, source: &str) {
        let (mut in_docs, mut in_struct, mut before) = (false, false, "");
        for (number, line) in source.lines().enumerate() {
            let place = |why: String| Place::new(path, number + 1, why);
            let trimmed = line.trim();
            let is_comment = trimmed.starts_with("//");
            let is_doc = trimmed.starts_with("///") || trimmed.starts_with("//!");
            let text = comment(line);
            if !is_comment {
                for literal in strings(line) {
                    let is_message = literal.split_whitespace().count() >= MESSAGE;
                    if let Some(word) = persons(literal).next().filter(|_| is_message) {
                        self.strings.push(place(format!("`{word}` in a message")));
                    }
                }
            }
            if let Some(text) = text.filter(|text| is_doc && !in_docs && !text.is_empty()) {
                self.docs += 1;
                if let Some(opener) = words(text)
                    .next()
                    .filter(|word| text.starts_with(word) && OPENERS.contains(word))
                {
                    let why = format!(
                        "`{opener}` opens a doc comment: open with a verb, or with the thing"
                    );
                    self.openers.push(place(why));
                }
            }
            in_docs = is_doc;
            if opens_struct(trimmed) {
                in_struct = true;
            } else if in_struct && trimmed == "}" {
                in_struct = false;
            } else if in_struct && is_private_field(line) {
                self.fields += 1;
                if !line.contains("//") && !before.trim_start().starts_with("//") {
                    self.untold.push(place("a private field without a comment".to_owned()));
                }
            }
            // The attributes of a field stand between it and its comment.
            if !trimmed.starts_with("#[") {
                before = line;
            }
            let Some(text) = text else { continue };
            self.read_text(text, &place);
            let columns = line.chars().count();
            if columns > WIDEST {
                self.wide
                    .push(place(format!("a comment of {columns} columns: {WIDEST} are the most")));
            }
        }
    }

    /// Counts the lines of a Markdown file.
    pub(crate) fn read_markdown(&mut self, path: &str, text: &str) {
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            if !in_code {
                self.read_text(line, &|why| Place::new(path, number + 1, why));
            }
        }
    }

    fn read_text(&mut self, text: &str, place: &impl Fn(String) -> Place) {
        self.words += english(text);
        for person in persons(text) {
            let why = format!("`{person}`: name the thread, the caller or the reader instead");
            self.persons.push(place(why));
        }
    }

    /// Returns the figures: `persons` in tenths per 1,000 words, `openers` and `untold` in per
    /// cent, all rounded up.
    pub(crate) fn figures(self) -> [(&'static str, Figure); 5] {
        let of = |places: &Places, scale: u64, all: u64| {
            (scale * places.len() as u64).div_ceil(all.max(1))
        };
        let persons = of(&self.persons, 10_000, self.words);
        let openers = of(&self.openers, 100, self.docs);
        let untold = of(&self.untold, 100, self.fields);
        [
            ("persons", Figure::new(persons, self.persons)),
            ("openers", Figure::new(openers, self.openers)),
            ("untold", Figure::new(untold, self.untold)),
            ("wide", Figure::counted(self.wide)),
            ("strings", Figure::counted(self.strings)),
        ]
    }
}

/// Returns the text of the comment on a line, if there is one.
pub(crate) fn comment(line: &str) -> Option<&str> {
    let trimmed = line.trim();
    if let Some(text) = trimmed.strip_prefix("//") {
        return Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim());
    }
    let (_, text) = line.split_once(" // ")?;
    // With an odd number of quotes the marks may be inside a string.
    line.matches('"').count().is_multiple_of(2).then(|| text.trim())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

fn persons(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| PERSONS.iter().any(|person| word.eq_ignore_ascii_case(person)))
}

/// Counts words of letters.
fn english(text: &str) -> u64 {
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '\'');
    words.filter(|word| !word.is_empty()).count() as u64
}

/// Returns the string literals that begin and end on the line.
fn strings(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begin = None;
    let mut escaped = false;
    for (at, letter) in line.char_indices() {
        match (letter, begin) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            ('"', None) => begin = Some(at + 1),
            ('"', Some(from)) => {
                found.push(&line[from..at]);
                begin = None;
            }
            _ => {}
        }
    }
    found
}

/// Removes the visibility before an item.
fn after_visibility(trimmed: &str) -> &str {
    let Some(rest) = trimmed.strip_prefix("pub") else { return trimmed };
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    if rest.starts_with(char::is_whitespace) { rest.trim_start() } else { trimmed }
}

fn opens_struct(trimmed: &str) -> bool {
    let item = after_visibility(trimmed);
    item.strip_prefix("struct")
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        && item.ends_with('{')
}

fn is_private_field(line: &str) -> bool {
    let trimmed = line.trim();
    if trimmed.starts_with("pub ") || !line.starts_with(char::is_whitespace) {
        return false;
    }
    let Some((name, rest)) = after_visibility(trimmed).split_once(':') else { return false };
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let ends = |at: usize| {
        let after = rest[at + 1..].trim_start();
        after.is_empty() || after.starts_with("//")
    };
    is_name
        && rest.starts_with(char::is_whitespace)
        && rest.match_indices(',').any(|(at, _)| ends(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(source: &str, of: impl Fn(&Prose) -> &Places) -> Vec<usize> {
        let mut prose = Prose::default();
        prose.read_rust("a.rs", source);
        of(&prose).iter().map(|place| place.line).collect()
    }

    #[test]
    fn a_comment_that_names_no_actor_is_found() {
        let persons = |source: &str| lines(source, |prose| &prose.persons);
        assert_eq!(persons("fn f() {\n    // Nobody sees it.\n    g(); // for whom\n}"), [2, 3]);
        assert_eq!(persons("//! For who asks, and whoever.\n"), [1, 1]);
        assert!(persons("let who = \"nobody\"; // whole, who_asks").is_empty());
    }

    #[test]
    fn an_opener_counts_where_a_doc_comment_begins() {
        let openers = |source: &str| lines(source, |prose| &prose.openers);
        assert_eq!(openers("/// Whether it is there.\n/// What follows is fine.\nfn f() {}"), [1]);
        assert_eq!(openers("// What it is.\n//! A list.\n\n//! How it goes.\n"), [4]);
        assert!(openers("/// Thatched roofs.\n").is_empty());
    }

    #[test]
    fn a_wide_line_counts_if_it_has_a_comment() {
        let wide = |source: &str| lines(source, |prose| &prose.wide);
        let line = format!("    // {}", "x".repeat(WIDEST - 7));
        assert!(wide(&line).is_empty());
        assert_eq!(wide(&format!("{line}x")), [1]);
        assert!(wide(&format!("f({});", "x".repeat(WIDEST))).is_empty());
        assert_eq!(wide(&format!("f({}); // y", "x".repeat(WIDEST))), [1]);
    }

    #[test]
    fn a_message_is_a_string_of_three_words() {
        let strings = |source: &str| lines(source, |prose| &prose.strings);
        assert_eq!(strings("panic!(\"nobody is there\");\nf(\"who\", \"a \\\" who b\");"), [1, 2]);
        assert!(strings("// \"nobody is there\"\nf(\"by nobody\")").is_empty());
    }

    #[test]
    fn a_private_field_has_a_comment_on_its_line_or_above() {
        let untold = |source: &str| lines(source, |prose| &prose.untold);
        let source = "pub(crate) struct A<T> {\n    /// Told.\n    #[arg(long)]\n    a: u8,\n    b: u8, // told\n    c: Map<u8, T>,\n    pub(crate) d: u8,\n    pub e: u8,\n}\nlet x = B {\n    f: 1,\n};";
        assert_eq!(untold(source), [6, 7]);
    }

    #[test]
    fn figures_are_rounded_up() {
        let mut prose = Prose::default();
        prose.read_rust("a.rs", &format!("/// How {}.\n", "word ".repeat(998)));
        prose.read_markdown("a.md", "who\n```\nwho who\n```\n");
        let figures = prose.figures();
        let value = |name| figures.iter().find(|(rule, _)| *rule == name).unwrap().1.value;
        assert_eq!(value("persons"), 10);
        assert_eq!(value("openers"), 100);
        assert_eq!(value("wide"), 1);
        assert_eq!(value("strings"), 0);
    }
}
