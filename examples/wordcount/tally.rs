//! The counts of a run.

use super::fault::Fault;
use std::collections::HashMap;

/// Counts of some text, or of many texts together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of files.
    pub files: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of lines.
    pub lines: u64,
    /// The number of words.
    pub words: u64,
    /// The number of times that each word was met, in lower case.
    pub each: HashMap<String, u64>,
}

impl Tally {
    /// Counts `text`. Its first byte is number `from` of its file. Words are letters and digits
    /// that follow each other.
    ///
    /// # Errors
    ///
    /// [`Fault`] if it is no text; then the counts are worth nothing.
    pub fn count(&mut self, text: &[u8], from: u64) -> Result<(), Fault> {
        if let Some(zero) = text.iter().position(|&byte| byte == 0) {
            return Err(Fault::Zero(from + zero as u64));
        }
        let bad = |error: std::str::Utf8Error| Fault::Encoding(from + error.valid_up_to() as u64);
        let text = std::str::from_utf8(text).map_err(bad)?;
        self.bytes += text.len() as u64;
        self.lines += text.bytes().filter(|&byte| byte == b'\n').count() as u64;
        let mut lower = String::new();
        for word in text.split(|letter: char| !letter.is_alphanumeric()) {
            if word.is_empty() {
                continue;
            }
            self.words += 1;
            lower.clear();
            lower.extend(word.chars().flat_map(char::to_lowercase));
            // Most words have been met before, and need no string of their own.
            match self.each.get_mut(lower.as_str()) {
                Some(count) => *count += 1,
                None => drop(self.each.insert(lower.clone(), 1)),
            }
        }
        Ok(())
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, mut other: Self) {
        if self.each.len() < other.each.len() {
            std::mem::swap(&mut self.each, &mut other.each);
        }
        self.files += other.files;
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.words += other.words;
        for (word, count) in other.each {
            *self.each.entry(word).or_default() += count;
        }
    }

    /// The most frequent words, and of equally frequent ones the first of the alphabet.
    pub fn top(&self, most: usize) -> Vec<(&str, u64)> {
        let mut words: Vec<_> =
            self.each.iter().map(|(word, &count)| (word.as_str(), count)).collect();
        words.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        words.truncate(most);
        words
    }
}
